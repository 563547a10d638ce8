#include "broker/engine.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* Half of them is for warnings alone, and half of the rest not for debugging: what matters finds room. */
enum { NOTES_MAX = 256 };

static struct note *note_new(struct broker *broker, enum broker_note_level level) {
    uint32_t max = level == BROKER_NOTE_WARNING ? NOTES_MAX : level == BROKER_NOTE_INFO ? NOTES_MAX / 2 : NOTES_MAX / 4;
    struct note *note = broker->note_count < max ? calloc(1, sizeof *note) : NULL;

    if (note != NULL)
        note->note.level = level;
    else
        broker->notes_dropped++;
    return note;
}

static void append(struct broker *broker, struct note *note) {
    /* Client ids and topics are the words of strangers, and may have been cut within a character. */
    for (char *at = note->note.text; *at != '\0'; at++)
        if ((unsigned char)*at < 0x20 || (unsigned char)*at > 0x7E) *at = '?';
    *(broker->last_note != NULL ? &broker->last_note->next : &broker->first_note) = note;
    broker->last_note = note;
    broker->note_count++;
}

void broker_note_add(struct broker *broker, enum broker_note_level level, const char *format, ...) {
    struct note *note = note_new(broker, level);
    va_list arguments;

    if (note == NULL) return;
    va_start(arguments, format);
    vsnprintf(note->note.text, sizeof note->note.text, format, arguments);
    va_end(arguments);
    append(broker, note);
}

void limit_reached(struct broker *broker, enum broker_at limit, const char *format, ...) {
    struct limit_note *state = &broker->limit_notes[limit];
    struct note *note;
    va_list arguments;
    char what[160];

    broker->counters.at_limit[limit]++;
    if (broker->now_ms < state->next_ms) {
        state->more++;
        if (state->next_ms < broker->limit_notes_due_ms) broker->limit_notes_due_ms = state->next_ms;
        return;
    }
    limit_notes_tick(broker, broker->now_ms);
    state->next_ms = broker->now_ms + LIMIT_NOTE_MS;
    note = note_new(broker, BROKER_NOTE_WARNING);
    if (note == NULL) return;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    snprintf(note->note.text, sizeof note->note.text, "limits.%s is reached: %s", broker_limit_name(limit), what);
    append(broker, note);
}

void limit_notes_tick(struct broker *broker, uint64_t now_ms) {
    if (broker->limit_notes_due_ms > now_ms) return;
    broker->limit_notes_due_ms = UINT64_MAX;
    for (int i = 0; i < BROKER_AT_COUNT; i++) {
        struct limit_note *state = &broker->limit_notes[i];
        if (state->more == 0) continue;
        if (state->next_ms <= now_ms) {
            broker_note_add(broker, BROKER_NOTE_WARNING, "limits.%s is reached: %llu more times in the last %d s",
                            broker_limit_name((enum broker_at)i), (unsigned long long)state->more,
                            LIMIT_NOTE_MS / 1000);
            state->more = 0;
        } else if (state->next_ms < broker->limit_notes_due_ms) {
            broker->limit_notes_due_ms = state->next_ms;
        }
    }
}

static void take_first(struct broker *broker) {
    struct note *note = broker->first_note;

    broker->first_note = note->next;
    if (broker->first_note == NULL) broker->last_note = NULL;
    broker->note_count--;
    free(note);
}

bool broker_next_note(struct broker *broker, struct broker_note *note) {
    if (broker->first_note == NULL && broker->notes_dropped > 0) {
        note->level = BROKER_NOTE_WARNING;
        snprintf(note->text, sizeof note->text, "%llu notes were dropped", (unsigned long long)broker->notes_dropped);
        broker->notes_dropped = 0;
        return true;
    }
    if (broker->first_note == NULL) return false;
    *note = broker->first_note->note;
    take_first(broker);
    return true;
}

void notes_free(struct broker *broker) {
    while (broker->first_note != NULL)
        take_first(broker);
}
