#include "daemon/trouble.h"

const char *trouble_name(enum member_trouble trouble) {
    switch (trouble) {
    case MEMBER_TROUBLE_NONE: break;
    case MEMBER_TROUBLE_TOKEN: return "token refused";
    case MEMBER_TROUBLE_NAME: return "name taken";
    case MEMBER_TROUBLE_CLONED: return "key in use by two";
    case MEMBER_TROUBLE_SEALED: return "other gossip key";
    case MEMBER_TROUBLE_RULES: return "breaks the rules";
    case MEMBER_TROUBLE_LIMITS: return "over our limits";
    case MEMBER_TROUBLE_ACCUSES: return "accuses others";
    }
    return NULL;
}

size_t trouble_list(const struct gossip *gossip, uint64_t now_ms, struct member_info *out, size_t max) {
    size_t count = 0;
    struct member_info info;
    for (size_t i = 0; count < max && gossip_member_at(gossip, now_ms, i, &info); i++)
        if (info.trouble != MEMBER_TROUBLE_NONE) out[count++] = info;
    return count;
}
