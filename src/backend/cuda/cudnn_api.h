// Our own prototypes of the part of cuDNN's graph ("backend") interface that thrice calls. Source: cuDNN 9
// API reference, cudnn_graph library (signatures, values of the constants).
#pragma once
#include <cstddef>
#include <cstdint>

#include "backend/cuda/api.h"

namespace thrice::backend::cuda {

using DnnHandle = struct DnnHandleStruct*;
using DnnDescriptor = void*;

enum : int {  // kinds of descriptors
  kDnnConvolution = 1,
  kDnnEngine = 2,
  kDnnEngineConfig = 3,
  kDnnHeuristic = 4,
  kDnnExecutionPlan = 5,
  kDnnConvolutionForward = 10,
  kDnnOperationGraph = 15,
  kDnnVariantPack = 16,
  kDnnTensor = 17,
};
enum : int {  // types of attributes
  kDnnTypeHandle = 0,
  kDnnTypeDataType = 1,
  kDnnTypeInt64 = 3,
  kDnnTypeFloat = 4,
  kDnnTypePointer = 6,
  kDnnTypeConvolutionMode = 7,
  kDnnTypeHeuristicMode = 8,
  kDnnTypeNumericalNote = 11,
  kDnnTypeDescriptor = 15,
};
enum : int {  // names of attributes
  kDnnConvolutionComputeType = 100,
  kDnnConvolutionMode = 101,
  kDnnConvolutionDilations = 102,
  kDnnConvolutionStrides = 103,
  kDnnConvolutionEndPads = 104,
  kDnnConvolutionBeginPads = 105,
  kDnnConvolutionSpatial = 106,
  kDnnHeuristicMode = 200,
  kDnnHeuristicGraph = 201,
  kDnnHeuristicResults = 202,
  kDnnEngineConfigEngine = 300,
  kDnnPlanHandle = 400,
  kDnnPlanEngineConfig = 401,
  kDnnPlanWorkspaceBytes = 402,
  kDnnForwardAlpha = 700,
  kDnnForwardBeta = 701,
  kDnnForwardConvolution = 702,
  kDnnForwardW = 703,
  kDnnForwardX = 704,
  kDnnForwardY = 705,
  kDnnGraphHandle = 800,
  kDnnGraphOperations = 801,
  kDnnTensorAlignment = 900,
  kDnnTensorDataType = 901,
  kDnnTensorDimensions = 902,
  kDnnTensorStrides = 903,
  kDnnTensorId = 906,
  kDnnPackIds = 1000,
  kDnnPackPointers = 1001,
  kDnnPackWorkspace = 1003,
  kDnnEngineNumericalNote = 1303,
};
constexpr int kDnnFloat = 0;              // cudnnDataType_t
constexpr int kDnnCrossCorrelation = 1;   // cudnnConvolutionMode_t: the window is not turned round
constexpr int kDnnHeuristicFallback = 2;  // cudnnBackendHeurMode_t: engines that take nearly everything
constexpr int kDnnHeuristicA = 3;
// Numerical notes of an engine: 0 tensor cores (f32 is rounded to tf32 there; engines without note 1 were
// seen to do so), 1 inputs rounded to fewer bits, 2 sums of fewer bits, 3 Fourier transform, 4 an order of
// sums that changes from run to run, 5 to 8 Winograd's transforms. 9 is strict NaN.
constexpr int kDnnFirstInexact = 0, kDnnLastInexact = 8;
constexpr int kDnnMostNotes = 10;

struct DnnApi {
  size_t (*GetVersion)() = nullptr;
  size_t (*GetCudartVersion)() = nullptr;
  void (*GetLastErrorString)(char*, size_t) = nullptr;
  int (*Create)(DnnHandle*) = nullptr;
  int (*Destroy)(DnnHandle) = nullptr;
  int (*SetStream)(DnnHandle, CUstream) = nullptr;
  int (*BackendCreateDescriptor)(int kind, DnnDescriptor*) = nullptr;
  int (*BackendDestroyDescriptor)(DnnDescriptor) = nullptr;
  int (*BackendSetAttribute)(DnnDescriptor, int name, int type, int64_t count, const void*) = nullptr;
  int (*BackendGetAttribute)(DnnDescriptor, int name, int type, int64_t room, int64_t* count,
                             void*) = nullptr;
  int (*BackendFinalize)(DnnDescriptor) = nullptr;
  int (*BackendExecute)(DnnHandle, DnnDescriptor plan, DnnDescriptor pack) = nullptr;
};

}  // namespace thrice::backend::cuda
