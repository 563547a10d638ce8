#include "daemon/name.h"

#include "broker/topic.h"

bool name_is_plain(const uint8_t *bytes, size_t size) {
    for (size_t i = 0; i < size; i++) {
        if (bytes[i] < 0x20 || bytes[i] == 0x7f) return false;
        if (bytes[i] == 0xc2 && i + 1 < size && bytes[i + 1] < 0xa0) return false;
    }
    return topic_utf8_valid((const char *)bytes, size);
}
