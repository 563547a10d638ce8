#include "daemon/trouble.h"

#include "daemon/server.h"

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

const char *trouble_of(const struct server *server, const struct member_info *info) {
    const struct identity *identity = server->identity;
    if (!info->self) return trouble_name(info->trouble);
    const enum expiry_state state =
        expiry_state(EXPIRY_TOKEN, identity->token_from_s, identity->token_ends_s, server->wall_told_ms / 1000);
    if (state == EXPIRY_OVER) return "token expired";
    if (identity->token_fault[0] != '\0') return trouble_name(MEMBER_TROUBLE_TOKEN);
    if (info->trouble != MEMBER_TROUBLE_NONE) return trouble_name(info->trouble);
    if (node_is_refused(server->node, server_now_ms(server))) return "refused by others";
    return state == EXPIRY_NEAR ? "token ends soon" : NULL;
}

size_t trouble_list(const struct server *server, struct troubled *out, size_t max) {
    const struct gossip *gossip = node_gossip(server->node);
    size_t count = 0;
    struct member_info info;
    for (size_t i = 0; count < max && gossip_member_at(gossip, server_now_ms(server), i, &info); i++) {
        const char *trouble = trouble_of(server, &info);
        if (trouble != NULL) out[count++] = (struct troubled){.member = info, .trouble = trouble};
    }
    return count;
}

uint64_t trouble_count(const struct server *server, uint64_t of_gossip) {
    struct member_info self;
    if (!gossip_member_at(node_gossip(server->node), server_now_ms(server), 0, &self)) return of_gossip;
    return of_gossip + (self.trouble == MEMBER_TROUBLE_NONE && trouble_of(server, &self) != NULL);
}
