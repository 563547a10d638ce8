#include "broker/foreign.h"

#include <string.h>

const char *foreign_protocol(const uint8_t *bytes, size_t size) {
    static const struct {
        const char *start;
        size_t size;
        const char *what;
    } known[] = {
        {"\x16\x03", 2, "it speaks TLS: switch that off there, or use a port of listen.mqtts or wss"},
        {"GET ", 4, "it speaks HTTP: for MQTT over WebSocket use a port of listen.ws"},
        {"POST ", 5, "it speaks HTTP, and this is a port for MQTT"},
        {"HEAD ", 5, "it speaks HTTP, and this is a port for MQTT"},
        {"PROXY ", 6, "it sends a PROXY header: name its address in listen.proxies, or switch that off there"},
        {"\r\n\r\n\0\r\nQUIT\n", 12,
         "it sends a PROXY header: name its address in listen.proxies, or switch that off there"},
        {"SSH-", 4, "it speaks SSH, and this is a port for MQTT"},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (size >= known[i].size && memcmp(bytes, known[i].start, known[i].size) == 0) return known[i].what;
    return NULL;
}
