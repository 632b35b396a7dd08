/* The structs of DLPack 1, by which frameworks hand tensors to each other: https://dmlc.github.io/dlpack.  Only what is
 * read here; the layouts are that standard's ABI. */
#ifndef BLK_PYTHON_DLPACK_H
#define BLK_PYTHON_DLPACK_H

#include <stdint.h>

enum { DL_CPU = 1, DL_CUDA = 2, DL_CUDA_HOST = 3, DL_CUDA_MANAGED = 13 };                         /* of DLDevice */
enum { DL_INT, DL_UINT, DL_FLOAT, DL_BFLOAT = 4, DL_BOOL = 6, DL_F8E4M3FN = 10, DL_F8E5M2 = 12 }; /* of DLDataType */
enum { DL_READ_ONLY = 1 }; /* of DLManagedTensorVersioned.flags */

typedef struct DLDevice {
	int32_t device_type, device_id;
} DLDevice;
typedef struct DLDataType {
	uint8_t code, bits;
	uint16_t lanes;
} DLDataType;
typedef struct DLTensor {
	void *data;
	DLDevice device;
	int32_t ndim;
	DLDataType dtype;
	int64_t *shape;
	int64_t *strides; /* in elements; null: contiguous */
	uint64_t byte_offset;
} DLTensor;
typedef struct DLManagedTensor {
	DLTensor dl_tensor;
	void *manager_ctx;
	void (*deleter)(struct DLManagedTensor *);
} DLManagedTensor;
typedef struct DLPackVersion {
	uint32_t major, minor;
} DLPackVersion;
typedef struct DLManagedTensorVersioned {
	DLPackVersion version;
	void *manager_ctx;
	void (*deleter)(struct DLManagedTensorVersioned *);
	uint64_t flags;
	DLTensor dl_tensor;
} DLManagedTensorVersioned;

/* What a type's __dlpack_c_exchange_api__ capsule holds: tensors without a Python call. */
typedef struct DLPackExchangeAPI {
	DLPackVersion version;
	struct DLPackExchangeAPI *previous;
	void *allocate, *managed_from_object, *managed_to_object;
	int (*tensor_from_object)(void *object, DLTensor *out); /* borrowed of the object; null: none */
	int (*current_stream)(int32_t device_type, int32_t device_id, void **out);
} DLPackExchangeAPI;

#endif
