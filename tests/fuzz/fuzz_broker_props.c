/* A block of properties in any packet: what passes the check is walked to its last byte, says of each no more than the
 * block holds, and loses on the way to others just what concerns this hop. The first byte of the input is the packet's
 * type. */
#include "broker/props.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_inside(struct mqtt_view view, const struct prop *prop) {
    if (view.size == 0) return;
    assert(view.bytes >= prop->encoded && view.bytes + view.size <= prop->encoded + prop->encoded_size);
}

/* Walks the block; what is to be passed on goes to kept. Returns its size. */
static size_t walk(struct mqtt_view block, uint8_t *kept) {
    struct reader reader = props_reader(block);
    struct prop prop;
    const uint8_t *at = block.bytes;
    size_t kept_size = 0;
    while (props_next(&reader, &prop)) {
        assert(prop.encoded == at && prop.encoded_size > 1);
        at += prop.encoded_size;
        check_inside(prop.text, &prop);
        check_inside(prop.value, &prop);
        if (prop_is_for_this_hop(prop.id)) continue;
        memcpy(kept + kept_size, prop.encoded, prop.encoded_size);
        kept_size += prop.encoded_size;
    }
    assert(at == block.bytes + block.size);
    return kept_size;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 1 || size > 1u << 20) return 0;
    enum mqtt_type type = data[0] & 15;
    uint32_t block_size = (uint32_t)(size - 1);
    /* Memory of exactly this size, so that a read past its end is seen. */
    uint8_t *bytes = malloc(size), *kept = malloc(size);
    assert(bytes != NULL && kept != NULL);
    memcpy(bytes, data + 1, block_size);
    struct mqtt_view block = {bytes, block_size};
    if (props_check(type, block) == MQTT_SUCCESS) {
        size_t kept_size = walk(block, kept);
        uint32_t stripped = props_strip(bytes, block_size);
        assert(stripped == kept_size && memcmp(bytes, kept, kept_size) == 0);
        assert(props_check(type, (struct mqtt_view){bytes, stripped}) == MQTT_SUCCESS);
        assert(props_strip(bytes, stripped) == stripped);
    }
    free(bytes);
    free(kept);
    return 0;
}
