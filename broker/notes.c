#include "broker/engine.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { NOTES_MAX = 256 };

void broker_note_add(struct broker *broker, enum broker_note_level level, const char *format, ...) {
    struct note *note = broker->note_count < NOTES_MAX ? calloc(1, sizeof *note) : NULL;
    va_list arguments;

    if (note == NULL) {
        broker->notes_dropped++;
        return;
    }
    note->note.level = level;
    va_start(arguments, format);
    vsnprintf(note->note.text, sizeof note->note.text, format, arguments);
    va_end(arguments);
    /* Client ids and topics are the words of strangers, and may have been cut within a character. */
    for (char *at = note->note.text; *at != '\0'; at++)
        if ((unsigned char)*at < 0x20 || (unsigned char)*at > 0x7E) *at = '?';
    *(broker->last_note != NULL ? &broker->last_note->next : &broker->first_note) = note;
    broker->last_note = note;
    broker->note_count++;
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
