"""torchvision's networks: classifiers, segmentation, and detectors up to their heads' raw outputs."""
import torch

from .exporters import dynamo, script


def classifier(name, size=224, export=dynamo, opset=20):
    import torchvision

    options = {"aux_logits": False, "init_weights": False} if name in ("googlenet", "inception_v3") else {}
    model = getattr(torchvision.models, name)(weights=None, **options)
    example = (torch.randn(2, 3, size, size),)
    axes = ({0: "batch"},) if export is dynamo else {"image": {0: "batch"}, "logits": {0: "batch"}}
    return export(model, example, axes, ["image"], ["logits"], opset=opset)


class Segmentation(torch.nn.Module):
    def __init__(self, name):
        super().__init__()
        import torchvision

        self.model = getattr(torchvision.models.segmentation, name)(weights=None, weights_backbone=None)

    def forward(self, image):
        return self.model(image)["out"]


def segmentation(name):
    axes = {"image": {0: "batch"}, "classes": {0: "batch"}}
    return script(Segmentation(name), (torch.randn(2, 3, 320, 320),), axes, ["image"], ["classes"])


class Detector(torch.nn.Module):
    """Features, pyramid and heads; the choice of boxes (anchors, non-maximum suppression) is left to the caller."""

    def __init__(self, name):
        super().__init__()
        import torchvision

        self.model = getattr(torchvision.models.detection, name)(weights=None, weights_backbone=None)

    def forward(self, image):
        return tuple(self.model.head(list(self.model.backbone(image).values())).values())


def detector(name, size, export=script):
    outputs = ["scores", "boxes"] if name != "fcos_resnet50_fpn" else ["scores", "boxes", "centreness"]
    example = (torch.randn(2, 3, size, size),)
    if export is dynamo:
        return dynamo(Detector(name), example, ({0: "batch"},), ["image"], outputs)
    return script(Detector(name), example, {key: {0: "batch"} for key in ["image", *outputs]}, ["image"], outputs)


NETWORKS = {
    "resnet18": lambda: classifier("resnet18", export=script, opset=17),
    "resnet101": lambda: classifier("resnet101", opset=18),
    "resnext50_32x4d": lambda: classifier("resnext50_32x4d"),
    "wide_resnet50_2": lambda: classifier("wide_resnet50_2"),
    "densenet121": lambda: classifier("densenet121", export=script, opset=17),
    "efficientnet_b0": lambda: classifier("efficientnet_b0", export=script, opset=17),
    "efficientnet_v2_s": lambda: classifier("efficientnet_v2_s", export=script, opset=17),
    "mobilenet_v3_small": lambda: classifier("mobilenet_v3_small", export=script, opset=17),
    "mobilenet_v3_large": lambda: classifier("mobilenet_v3_large", export=script, opset=17),
    "shufflenet_v2_x1_0": lambda: classifier("shufflenet_v2_x1_0", export=script, opset=17),
    "squeezenet1_1": lambda: classifier("squeezenet1_1", export=script, opset=17),
    "mnasnet1_0": lambda: classifier("mnasnet1_0", export=script, opset=17),
    "regnet_y_400mf": lambda: classifier("regnet_y_400mf", export=script, opset=17),
    "googlenet": lambda: classifier("googlenet", export=script, opset=17),
    "inception_v3": lambda: classifier("inception_v3", size=299, export=script, opset=17),
    "vgg16": lambda: classifier("vgg16", export=script, opset=17),
    "alexnet": lambda: classifier("alexnet", export=script, opset=17),
    "convnext_tiny": lambda: classifier("convnext_tiny", export=script, opset=17),
    "deeplabv3_mobilenet": lambda: segmentation("deeplabv3_mobilenet_v3_large"),
    "lraspp_mobilenet": lambda: segmentation("lraspp_mobilenet_v3_large"),
    "fcn_resnet50": lambda: segmentation("fcn_resnet50"),
    "ssdlite320_mobilenet": lambda: detector("ssdlite320_mobilenet_v3_large", 320, export=dynamo),
    "retinanet_resnet50": lambda: detector("retinanet_resnet50_fpn", 320),
    "fcos_resnet50": lambda: detector("fcos_resnet50_fpn", 320),
}
