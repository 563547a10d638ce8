#include "tests/model/world.h"

#include "tests/unit/gossip_entry.h"
#include "tests/unit/gossip_net_crypto.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct member_id owner_id = {{1}};
static struct net_identity identity = {.public_key = {4, 1}};
static const struct registry_watch nobody;

static const struct registry_rules *rules(void) {
    static struct registry_rules made;
    made.crypto = (struct gossip_crypto){
        .context = &identity, .sha256 = net_sha256, .sign = net_sign, .verify = net_verify, .id_of = net_id_of};
    made.limits = (struct registry_limits){64, 1u << 16, 64};
    return &made;
}

/* So long that a checkpoint with two of them takes two chunks. */
static void key_filter(int key, char filter[401]) {
    memset(filter, 'a' + key, 400);
    filter[400] = '\0';
}

/* ---- the owner ---- */

static void sign_head(struct model *model) {
    assert(model->head_count < MODEL_HEADS);
    struct model_head *made = &model->heads[model->head_count++];
    made->base = model->owner ? model->owner->base : NULL;
    if (made->base) made->base->refs++;
    made->head = (struct head){.id = owner_id,
                               .epoch = model->epoch,
                               .incarnation = ++model->incarnation,
                               .sequence = registry_sequence(model->owner),
                               .name = "owner"};
    checkpoint_name(made->base, &rules()->crypto, &made->head);
    made->size = head_sign(&made->head, &rules()->crypto, made->bytes);
    if (made->base) checkpoint_set_head(made->base, made->bytes, made->size);
}

static void write_next(struct model *model) {
    char op = model->bounds->script[model->writes++], filter[401];
    int key = (op | 0x20) - 'a';
    bool deletes = op < 'a';
    uint64_t sequence = registry_sequence(model->owner) + 1;
    uint8_t bytes[MESSAGE_BLOB_MAX];
    key_filter(key, filter);
    size_t size = entry_body(&owner_id, model->epoch, sequence, filter, deletes, bytes);
    net_sign_as(identity.public_key, bytes, size, bytes + size);
    struct model_entry *made = &model->signed_entries[model->entry_count++];
    made->entry = log_entry_new(sequence, bytes, size + GOSSIP_SIGNATURE_SIZE);
    enum registry_result result = registry_apply(&model->owner, rules(), made->entry, &nobody);
    assert(result == REGISTRY_OK);
    model->keys = deletes ? model->keys & ~(1u << key) : model->keys | 1u << key;
    made->epoch = model->epoch;
    made->keys = model->keys;
    memcpy(made->chain, model->owner->at.chain, sizeof made->chain);
}

static void write_checkpoint(struct model *model, uint64_t epoch) {
    bool done = registry_checkpoint(&model->owner, rules(), epoch);
    assert(done);
    model->epoch = epoch;
    sign_head(model);
}

static void restart_owner(struct model *model) {
    model->owner_crashes++;
    registry_unref(model->owner);
    model->owner = NULL;
    model->keys = 0;
    if (!model->bounds->loses_disk) model->epoch++;
    sign_head(model);
}

/* ---- replicas ---- */

static void forget(struct model_replica *replica) {
    transfers_free(&replica->transfers);
    registry_unref(replica->registry);
    replica->registry = NULL;
}

/* As evidence.c: the newest head is kept, a new epoch begins with nothing, and one that names a checkpoint above us,
 * and not above the newest head's, helps even when it is not newer. */
static void give_head(struct model *model, struct model_replica *replica, int which) {
    const struct model_head *given = &model->heads[which];
    const struct head *head = &given->head;
    const struct head *newest = replica->head < 0 ? NULL : &model->heads[replica->head].head;
    bool newer = head->epoch > replica->epoch ||
                 (head->epoch == replica->epoch && newest && head->incarnation > newest->incarnation);
    bool helps = head->epoch == replica->epoch && head->checkpoint_sequence > registry_sequence(replica->registry) &&
                 (!newest || head->checkpoint_sequence <= newest->checkpoint_sequence);
    if (!newer && !helps) return;
    if (head->epoch > replica->epoch) forget(replica);
    replica->epoch = head->epoch;
    if (newer) replica->head = which;
    transfers_head(&replica->transfers, &replica->registry, rules(), head, given->bytes, given->size, &nobody);
}

static void give_entry(struct model_replica *replica, const struct log_entry *given) {
    struct entry entry;
    bool readable = entry_read(given->bytes, given->size, &entry);
    assert(readable);
    if (entry.epoch != replica->epoch) return;
    transfers_entry(&replica->transfers, &replica->registry, rules(), &entry, given->bytes, given->size, &nobody);
}

static void give_chunk(struct model_replica *replica, uint64_t epoch, const struct checkpoint *base, uint64_t index) {
    struct checkpoint_chunk chunk;
    if (epoch != replica->epoch) return;
    checkpoint_read(base, index, &chunk);
    struct message message = {.kind = MESSAGE_CHUNK,
                              .version = {.id = owner_id, .epoch = epoch, .sequence = base->sequence},
                              .number = index,
                              .bytes = chunk.bytes,
                              .size = chunk.size,
                              .proof = chunk.proof,
                              .proof_size = chunk.proof_size};
    transfers_chunk(&replica->transfers, &replica->registry, rules(), &message, &nobody);
}

static uint64_t chunks_of(const struct checkpoint *base) {
    return base ? checkpoint_chunks(rowset_encoded_size(&base->rows)) : 0;
}

/* ---- what can happen ---- */

enum what { NOTHING, WRITE, CHECKPOINT, RESTART, DEATH, CRASH, HEAD, ENTRY, CHUNK };
struct event {
    enum what what;
    int replica, which;
    uint64_t index;
};

static bool owner_event(const struct model *model, int nth, struct event *event) {
    const struct model_bounds *bounds = model->bounds;
    const bool possible[] = {
        model->writes < MODEL_WRITES,
        model->checkpoints < bounds->checkpoints &&
            registry_sequence(model->owner) > registry_base_sequence(model->owner),
        model->owner_crashes < bounds->owner_crashes,
        true,
    };
    for (int i = 0; model->owner_alive && i < 4; i++) {
        if (!possible[i] || nth-- > 0) continue;
        event->what = (enum what)(WRITE + i);
        return true;
    }
    event->index = (uint64_t)nth;
    return false;
}

static bool replica_event(const struct model *model, int replica, int nth, struct event *event) {
    event->replica = replica;
    if (model->crashes < model->bounds->crashes && nth-- == 0) {
        event->what = CRASH;
        return true;
    }
    if (nth < model->entry_count) {
        event->what = ENTRY;
        event->which = nth;
        return true;
    }
    nth -= model->entry_count;
    for (int i = 0; i < model->head_count; i++) {
        int count = 1 + (int)chunks_of(model->heads[i].base);
        if (nth < count) {
            event->what = nth == 0 ? HEAD : CHUNK;
            event->which = i;
            event->index = (uint64_t)(nth - 1);
            return true;
        }
        nth -= count;
    }
    event->index = (uint64_t)nth;
    return false;
}

static struct event event_at(const struct model *model, int nth) {
    struct event event = {NOTHING, 0, 0, 0};
    if (owner_event(model, nth, &event)) return event;
    nth = (int)event.index;
    for (int i = 0; i < model->bounds->replicas; i++) {
        if (replica_event(model, i, nth, &event)) return event;
        nth = (int)event.index;
    }
    return (struct event){NOTHING, 0, 0, 0};
}

bool model_do(struct model *model, int nth) {
    struct event event = event_at(model, nth);
    struct model_replica *replica = &model->replicas[event.replica];
    switch (event.what) {
    case NOTHING: return false;
    case WRITE: write_next(model); break;
    case CHECKPOINT:
        model->checkpoints++;
        write_checkpoint(model, model->epoch);
        break;
    case RESTART: restart_owner(model); break;
    case DEATH: model->owner_alive = false; break;
    case CRASH:
        model->crashes++;
        forget(replica);
        replica->epoch = 0;
        replica->head = -1;
        break;
    case HEAD: give_head(model, replica, event.which); break;
    case ENTRY: give_entry(replica, model->signed_entries[event.which].entry); break;
    case CHUNK:
        give_chunk(replica, model->heads[event.which].head.epoch, model->heads[event.which].base, event.index);
        break;
    }
    return true;
}

void model_name(const struct model *model, int nth, char text[80]) {
    static const char *const names[] = {
        "nothing",   "the owner writes", "the owner checkpoints", "the owner restarts", "the owner dies", "crashes",
        "gets head", "gets entry",       "gets a chunk of head"};
    struct event event = event_at(model, nth);
    if (event.what < CRASH)
        snprintf(text, 80, "%s", names[event.what]);
    else if (event.what == CHUNK)
        snprintf(text, 80, "replica %d gets chunk %d of head %d", event.replica, (int)event.index, event.which);
    else
        snprintf(text, 80, "replica %d %s %d", event.replica, names[event.what], event.which);
}

/* ---- copies ---- */

void model_begin(struct model *model, const struct model_bounds *bounds) {
    memset(model, 0, sizeof *model);
    model->bounds = bounds;
    model->owner_alive = true;
    model->epoch = 1;
    for (int i = 0; i < MODEL_REPLICAS; i++)
        model->replicas[i].head = -1;
    sign_head(model);
}

void model_end(struct model *model) {
    for (int i = 0; i < MODEL_REPLICAS; i++)
        forget(&model->replicas[i]);
    registry_unref(model->owner);
    for (int i = 0; i < model->entry_count; i++)
        log_entry_unref(model->signed_entries[i].entry);
    for (int i = 0; i < model->head_count; i++)
        checkpoint_unref(model->heads[i].base);
}

static void copy_staging(const struct staging *from, struct staging *to) {
    *to = *from;
    to->bytes = from->room ? malloc(from->room) : NULL;
    if (to->bytes) memcpy(to->bytes, from->bytes, from->size);
    for (uint64_t i = 0; i < STAGING_WINDOW; i++) {
        if (!from->early[i]) continue;
        to->early[i] = malloc(MESSAGE_CHUNK_SIZE);
        uint64_t index = staging_next(from) + 1;
        while (index % STAGING_WINDOW != i)
            index++;
        memcpy(to->early[i], from->early[i], checkpoint_chunk_size(from->head.checkpoint_size, index));
    }
}

static void copy_replica(const struct model_replica *from, struct model_replica *to) {
    *to = *from;
    if (to->registry) shared_ref(&to->registry->shared);
    to->transfers.all = NULL;
    if (!from->transfers.all) return;
    struct transfer *copy = malloc(sizeof *copy);
    *copy = *from->transfers.all;
    for (size_t i = 0; i < TRANSFER_WINDOW; i++)
        if (copy->window[i]) copy->window[i]->refs++;
    for (size_t i = 0; i < TRANSFER_STAGINGS; i++)
        copy_staging(&from->transfers.all->staging[i], &copy->staging[i]);
    HASH_ADD(hh, to->transfers.all, id, sizeof copy->id, copy);
}

void model_copy(const struct model *from, struct model *to) {
    *to = *from;
    for (int i = 0; i < MODEL_REPLICAS; i++)
        copy_replica(&from->replicas[i], &to->replicas[i]);
    if (to->owner) shared_ref(&to->owner->shared);
    for (int i = 0; i < to->entry_count; i++)
        to->signed_entries[i].entry->refs++;
    for (int i = 0; i < to->head_count; i++)
        if (to->heads[i].base) to->heads[i].base->refs++;
}

static uint64_t mix(uint64_t hash, uint64_t value) {
    return net_mix(hash, (const uint8_t *)&value, sizeof value);
}

static uint64_t hash_replica(const struct model_replica *replica) {
    uint64_t hash = mix(mix(1, replica->epoch), (uint64_t)(replica->head + 1));
    if (replica->registry) {
        hash = net_mix(hash, (const uint8_t *)&replica->registry->at, sizeof replica->registry->at);
        hash = mix(hash, replica->registry->rows.count);
    }
    const struct transfer *transfer = replica->transfers.all;
    for (size_t i = 0; transfer && i < TRANSFER_WINDOW; i++)
        if (transfer->window[i]) hash = net_mix(hash, transfer->window[i]->bytes, transfer->window[i]->size);
    for (size_t i = 0; transfer && i < TRANSFER_STAGINGS; i++) {
        const struct staging *staging = &transfer->staging[i];
        if (!staging->used) continue;
        hash = net_mix(mix(mix(hash, i), staging->size), staging->head_bytes, staging->head_size);
        for (size_t j = 0; j < STAGING_WINDOW; j++)
            hash = mix(hash, staging->early[j] != NULL);
    }
    return hash;
}

uint64_t model_hash(const struct model *model) {
    uint64_t hash = mix(mix(2, (uint64_t)model->owner_alive), model->epoch), all = 0;
    hash = mix(mix(mix(hash, (uint64_t)model->writes), (uint64_t)model->crashes), (uint64_t)model->owner_crashes);
    for (int i = 0; i < model->entry_count; i++)
        hash = net_mix(hash, model->signed_entries[i].chain, 8);
    for (int i = 0; i < model->head_count; i++)
        hash = net_mix(hash, model->heads[i].bytes, model->heads[i].size);
    for (int i = 0; i < MODEL_REPLICAS; i++) {
        uint64_t one = hash_replica(&model->replicas[i]);
        all += one * (one | 1);
    }
    return mix(hash, all);
}

/* ---- what must hold ---- */

static bool shows(const struct rowset *rows, unsigned keys) {
    size_t count = 0;
    for (int key = 0; key < MODEL_KEYS; key++) {
        char filter[401];
        key_filter(key, filter);
        bool there = rowset_has(rows, GOSSIP_NEWSUB, filter, 400);
        if (there != ((keys >> key & 1) != 0)) return false;
        count += there;
    }
    return rows->count == count;
}

/* What was signed as the state with this chain; NULL: nothing. */
static const struct model_entry *truth(const struct model *model, uint64_t sequence, const uint8_t chain[8]) {
    for (int i = 0; i < model->entry_count; i++)
        if (model->signed_entries[i].entry->sequence == sequence &&
            memcmp(model->signed_entries[i].chain, chain, 8) == 0)
            return &model->signed_entries[i];
    return NULL;
}

/* A life that lost its disk goes on in the epoch of the one before, so a replica may take entries of both, until it is
 * noticed: what it shows then was never signed as a whole. Without such a life there is no excuse. */
static const char *registry_fault(const struct model *model, const struct registry *registry) {
    if (!registry) return NULL;
    const struct model_entry *state = truth(model, registry->at.sequence, registry->at.chain);
    bool may_be_mixed = model->bounds->loses_disk && model->owner_crashes > 0;
    if (!state) return may_be_mixed ? NULL : "I1: a state that the owner never had";
    if (!shows(&registry->rows, state->keys)) return "I1, I3: not what the owner showed at that sequence";
    if (registry->log_count != registry->at.sequence - registry->at.base_sequence) return "the log has a gap";
    for (size_t i = 0; i < registry->log_count; i++)
        if (registry->log[i]->sequence != registry->at.base_sequence + 1 + i) return "the log is out of order";
    if (!registry->base) return registry->at.base_sequence == 0 ? NULL : "a base without a checkpoint";
    state = truth(model, registry->base->sequence, registry->base->chain);
    if (!state) return may_be_mixed ? NULL : "I1: a checkpoint that the owner never had";
    return shows(&registry->base->rows, state->keys) ? NULL : "I1: a checkpoint that is not what the owner showed";
}

static const char *step_fault(const struct model *model, const struct model_replica *before,
                              const struct model_replica *after) {
    bool may_be_mixed = model->bounds->loses_disk && model->owner_crashes > 0;
    if (after->epoch < before->epoch) return "I2: an epoch fell";
    if (after->epoch == before->epoch && registry_sequence(after->registry) < registry_sequence(before->registry) &&
        !may_be_mixed)
        return "I2: a sequence fell";
    return NULL;
}

const char *model_fault(const struct model *before, const struct model *after) {
    const char *fault = registry_fault(after, after->owner);
    for (int i = 0; i < after->bounds->replicas && !fault; i++) {
        fault = registry_fault(after, after->replicas[i].registry);
        if (!fault && before && before->crashes == after->crashes)
            fault = step_fault(after, &before->replicas[i], &after->replicas[i]);
    }
    return fault;
}

/* ---- convergence ---- */

static int newest_head_of(const struct model *model, int who) {
    return who < model->bounds->replicas ? model->replicas[who].head : model->head_count - 1;
}

static const struct registry *registry_of(const struct model *model, int who) {
    return who < model->bounds->replicas ? model->replicas[who].registry : model->owner;
}

static int head_of_base(const struct model *model, const struct checkpoint *base) {
    for (int i = 0; i < model->head_count; i++)
        if (base && base->head_size == model->heads[i].size &&
            memcmp(base->head, model->heads[i].bytes, base->head_size) == 0)
            return i;
    return -1;
}

/* The chunks it asks for, as far as this one has that checkpoint. */
static void serve_chunks(const struct registry *from, struct model_replica *to) {
    for (size_t i = 0; from && from->base && i < TRANSFER_STAGINGS; i++) {
        const struct transfer *transfer = to->transfers.all;
        if (!transfer || !transfer->staging[i].used ||
            transfer->staging[i].head.checkpoint_sequence != from->base->sequence)
            continue;
        for (uint64_t index = 0; index < chunks_of(from->base) && to->transfers.all; index++)
            give_chunk(to, from->at.epoch, from->base, index);
    }
}

/* As serve() in repair.c, and what the receiver then asks for. */
static void serve(struct model *model, int who, struct model_replica *to) {
    int head = newest_head_of(model, who);
    if (head < 0) return;
    give_head(model, to, head);
    const struct registry *from = registry_of(model, who);
    if (!from || model->heads[head].head.epoch != to->epoch) return;
    if (registry_sequence(to->registry) < from->at.base_sequence) {
        int base = head_of_base(model, from->base);
        if (base >= 0) give_head(model, to, base);
    }
    serve_chunks(from, to);
    for (uint64_t sequence = registry_sequence(to->registry) + 1; registry_entry(from, sequence); sequence++)
        give_entry(to, registry_entry(from, sequence));
}

/* As compare_self() in repair.c: a replica that has more of us, or as much and other. */
static void look_back(struct model *model, const struct model_replica *replica) {
    uint64_t theirs = registry_sequence(replica->registry), own = registry_sequence(model->owner);
    if (model->head_count + 1 >= MODEL_HEADS) return;
    if (replica->epoch > model->epoch || (replica->epoch == model->epoch && theirs > own))
        write_checkpoint(model, replica->epoch + 1);
    else if (replica->epoch == model->epoch && theirs == own && own > 0 &&
             memcmp(replica->registry->at.chain, model->owner->at.chain, 8) != 0) {
        if (own > registry_base_sequence(model->owner))
            write_checkpoint(model, model->epoch);
        else
            sign_head(model);
    }
}

static bool agree(const struct registry *a, const struct registry *b) {
    if (registry_sequence(a) != registry_sequence(b)) return false;
    return !a || memcmp(a->at.chain, b->at.chain, sizeof a->at.chain) == 0;
}

const char *model_converge(struct model *model) {
    int count = model->bounds->replicas, all = count + model->owner_alive;
    bool two_lives = model->bounds->loses_disk && model->owner_crashes > 0;
    for (int round = 0; round < 8; round++) {
        for (int to = 0; to < count; to++) {
            for (int from = 0; from < all; from++)
                if (from != to) serve(model, from, &model->replicas[to]);
            if (model->owner_alive) look_back(model, &model->replicas[to]);
        }
    }
    if (two_lives && !model->owner_alive) return NULL; /* two halves of the truth, and nobody to say which is newer */
    for (int i = 0; i < count; i++) {
        const struct model_replica *replica = &model->replicas[i];
        if (replica->epoch != (model->owner_alive ? model->epoch : model->replicas[0].epoch))
            return "they do not agree on the epoch";
        if (!agree(replica->registry, model->owner_alive ? model->owner : model->replicas[0].registry))
            return "they do not agree";
        /* Above it: folded to what the life before had said in the very same words. */
        uint64_t base = registry_base_sequence(replica->registry), own_base = registry_base_sequence(model->owner);
        if (model->owner_alive && (base < own_base || (base > own_base && !two_lives))) return "a log is not folded";
        if (replica->transfers.all && model->owner_alive && !two_lives) return "something is on its way for ever";
    }
    return model_fault(NULL, model);
}
