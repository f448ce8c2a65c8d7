/* Runs a release on zeros and prints what comes out. C only; links libthrice.
 *   cc examples/01_run.c -I include -L build/release -lthrice -o run && ./run model.thrice 4
 * The number after the file is taken for every symbolic extent. */
#include <stdio.h>
#include <stdlib.h>
#include <thrice/thrice.h>

static void check(thrice_status status, const char* doing) {
  if (status == THRICE_OK) return;
  fprintf(stderr, "%s: %s [%s]\n", doing, thrice_message(), thrice_status_name(status));
  exit(1);
}

static void print_extents(const int64_t* shape, int32_t rank) {
  for (int32_t axis = 0; axis < rank; ++axis) printf("%s%lld", axis ? "x" : "", (long long)shape[axis]);
}

int main(int argc, char** argv) {
  if (argc < 2) {
    fprintf(stderr, "usage: %s RELEASE [EXTENT]\n", argv[0]);
    return 2;
  }
  const int64_t extent = argc > 2 ? atoll(argv[2]) : 1;
  thrice_session* session = NULL;
  check(thrice_load(argv[1], NULL, &session), "loading");
  printf("%s on %s (%s)\n", argv[1], thrice_device_id(session), thrice_device_name(session));

  const size_t num_inputs = thrice_num_inputs(session);
  thrice_tensor* inputs = calloc(num_inputs + 1, sizeof *inputs);
  for (size_t i = 0; i < num_inputs; ++i) {
    thrice_tensor_info info;
    check(thrice_input_info(session, i, &info), "describing an input");
    int64_t* shape = calloc((size_t)info.rank + 1, sizeof *shape);
    size_t count = 1;
    for (int32_t axis = 0; axis < info.rank; ++axis) {
      shape[axis] = info.shape[axis] < 0 ? extent : info.shape[axis];
      count *= (size_t)shape[axis];
    }
    inputs[i].data = calloc(count + 1, thrice_dtype_bytes(info.dtype));
    inputs[i].shape = shape;
    inputs[i].rank = info.rank;
    inputs[i].dtype = info.dtype;
    inputs[i].memory = THRICE_HOST;
    printf("input  %s %s ", info.name, thrice_dtype_name(info.dtype));
    print_extents(shape, info.rank);
    printf("\n");
  }

  thrice_result* result = NULL;
  check(thrice_run(session, inputs, num_inputs, &result), "running");
  for (size_t i = 0; i < thrice_result_size(result); ++i) {
    thrice_tensor_info info;
    thrice_tensor tensor;
    check(thrice_output_info(session, i, &info), "describing an output");
    check(thrice_result_tensor(result, i, &tensor), "reading an output");
    printf("output %s %s ", info.name, thrice_dtype_name(tensor.dtype));
    print_extents(tensor.shape, tensor.rank);
    if (tensor.dtype == THRICE_F32) printf(" first %g", (double)((const float*)tensor.data)[0]);
    printf("\n");
  }
  thrice_result_free(result);
  for (size_t i = 0; i < num_inputs; ++i) {
    free(inputs[i].data);
    free((void*)inputs[i].shape);
  }
  free(inputs);
  thrice_session_free(session);
  return 0;
}
