"""Networks that export_networks.py exports: each module has NETWORKS, a ModelProto by name."""
