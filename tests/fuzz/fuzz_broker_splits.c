/* The tree of topic levels, split and put together in every way, beside a list of the same topics. */
#include "tests/unit/tree_model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct model model;

    if (size == 0) return 0;
    model_begin(&model, data[0] % 2 == 1);
    for (data++, size--; size >= MODEL_STEP_SIZE; data += MODEL_STEP_SIZE, size -= MODEL_STEP_SIZE)
        model_step(&model, data);
    assert(model.unmerged == 0);
    model_end(&model);
    return 0;
}
