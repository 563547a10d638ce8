#include "daemon/proxy.h"

#include <arpa/inet.h>
#include <string.h>

#include "daemon/name.h"

#define LINE_MAX_V1 107u /* bytes with CR LF (section 2.1) */
#define HEAD_SIZE 16u    /* of version 2 (section 2.2), before addresses and TLVs */

static const uint8_t signature[12] = {0x0d, 0x0a, 0x0d, 0x0a, 0x00, 0x0d, 0x0a, 0x51, 0x55, 0x49, 0x54, 0x0a};

enum {
    TLV_CRC32C = 0x03,
    TLV_SSL = 0x20,
    TLV_SSL_CN = 0x22,
    CLIENT_SSL = 0x01,
    CLIENT_CERTIFICATE = 0x02 | 0x04, /* shown on this connection or in this session */
};

static enum proxy_result bad(const char **wrong, const char *why) {
    *wrong = why;
    return PROXY_BAD;
}

/* ---- version 1: one line of text ---- */

/* Cuts the next field, which ends at a single space or at the end of the line; NULL if there is none. */
static const char *next_field(char **line) {
    char *field = *line;
    if (field == NULL || *field == '\0' || *field == ' ') return NULL;
    char *space = strchr(field, ' ');
    if (space != NULL) *space = '\0';
    *line = space != NULL ? space + 1 : NULL;
    return field;
}

/* Decimal, without leading zeros, to 65,535. */
static bool parse_port(const char *text, uint16_t *port) {
    uint32_t number = 0;
    if (text == NULL || *text == '\0' || (text[0] == '0' && text[1] != '\0')) return false;
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9') return false;
        number = number * 10 + (uint32_t)(*text - '0');
        if (number > 65535) return false;
    }
    *port = (uint16_t)number;
    return true;
}

static bool parse_addresses(int family, char *line, struct proxy_header *out) {
    uint8_t number[16];
    uint16_t port;
    const char *from = next_field(&line), *to = next_field(&line);
    const char *from_port = next_field(&line), *to_port = next_field(&line);
    if (to_port == NULL || line != NULL) return false;
    if (inet_pton(family, to, number) != 1 || inet_pton(family, from, number) != 1) return false;
    if (!parse_port(to_port, &port) || !parse_port(from_port, &out->port)) return false;
    return inet_ntop(family, number, out->ip, sizeof(out->ip)) != NULL;
}

static enum proxy_result decode_line(const uint8_t *bytes, size_t size, struct proxy_header *out, const char **wrong) {
    char text[LINE_MAX_V1 + 1];
    size_t end = 6;
    while (end < size && end < LINE_MAX_V1 && bytes[end] != '\r' && bytes[end] != '\n' && bytes[end] != '\0')
        end++;
    if (end + 2 > LINE_MAX_V1) return bad(wrong, "its line is longer than 107 bytes");
    if (end == size || (end + 1 == size && bytes[end] == '\r')) return PROXY_MORE;
    if (bytes[end] != '\r' || bytes[end + 1] != '\n') return bad(wrong, "its line does not end in CR LF");
    memcpy(text, bytes, end);
    text[end] = '\0';
    out->size = end + 2;
    char *line = text + 6;
    const char *family = next_field(&line);
    if (family != NULL && strcmp(family, "UNKNOWN") == 0) return PROXY_DONE;
    out->has_address = true;
    if (family != NULL && strcmp(family, "TCP4") == 0 && parse_addresses(AF_INET, line, out)) return PROXY_DONE;
    if (family != NULL && strcmp(family, "TCP6") == 0 && parse_addresses(AF_INET6, line, out)) return PROXY_DONE;
    return bad(wrong, "its line is not \"PROXY TCP4|TCP6|UNKNOWN address address port port\"");
}

/* ---- version 2: binary ---- */

static unsigned read_16(const uint8_t *bytes) {
    return (unsigned)bytes[0] << 8 | bytes[1];
}

/* CRC-32C (RFC 4960 appendix B) of the header with the four bytes of the checksum taken as zero. */
static uint32_t crc32c(const uint8_t *bytes, size_t size, size_t checksum_at) {
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < size; i++) {
        crc ^= i >= checksum_at && i < checksum_at + 4 ? 0 : bytes[i];
        for (unsigned bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
    }
    return ~crc;
}

/* The next TLV of bytes[*at .. end): true, and its value; false at the end, and *good is false if one does not fit. */
static bool next_tlv(const uint8_t *bytes, size_t end, size_t *at, uint8_t *type, size_t *value, size_t *value_size,
                     bool *good) {
    if (*at == end) return false;
    *good = end - *at >= 3 && end - *at - 3 >= read_16(bytes + *at + 1);
    if (!*good) return false;
    *type = bytes[*at];
    *value = *at + 3;
    *value_size = read_16(bytes + *at + 1);
    *at = *value + *value_size;
    return true;
}

/* A name with a control character, one too long, or one that is not UTF-8 is none that a user name could be compared
 * with. */
static void take_name(const uint8_t *bytes, size_t size, struct proxy_header *out) {
    if (size == 0 || size > PROXY_NAME_MAX) return;
    if (!name_is_plain(bytes, size)) return;
    memcpy(out->name, bytes, size);
    out->name[size] = '\0';
}

/* Section 2.2.6: the name counts only if the certificate was verified. */
static bool read_ssl(const uint8_t *bytes, size_t at, size_t end, struct proxy_header *out) {
    if (end - at < 5) return false;
    const unsigned client = bytes[at];
    const bool verified = bytes[at + 1] == 0 && bytes[at + 2] == 0 && bytes[at + 3] == 0 && bytes[at + 4] == 0;
    const bool shown = (client & CLIENT_SSL) != 0 && (client & CLIENT_CERTIFICATE) != 0;
    uint8_t type;
    size_t value, value_size;
    bool good = true;
    at += 5;
    while (next_tlv(bytes, end, &at, &type, &value, &value_size, &good))
        if (type == TLV_SSL_CN && verified && shown) take_name(bytes + value, value_size, out);
    return good;
}

static enum proxy_result read_tlvs(const uint8_t *bytes, size_t at, struct proxy_header *out, const char **wrong) {
    uint8_t type;
    size_t value, value_size;
    bool good = true;
    while (next_tlv(bytes, out->size, &at, &type, &value, &value_size, &good)) {
        if (type == TLV_SSL && !read_ssl(bytes, value, value + value_size, out)) good = false;
        if (type == TLV_CRC32C && value_size != 4) good = false;
        if (!good) break;
        if (type != TLV_CRC32C) continue;
        const uint32_t sent = read_16(bytes + value) << 16 | read_16(bytes + value + 2);
        if (sent != crc32c(bytes, out->size, value)) return bad(wrong, "its checksum is wrong");
    }
    return good ? PROXY_DONE : bad(wrong, "a value in it is longer than the header");
}

static enum proxy_result decode_binary(const uint8_t *bytes, size_t size, struct proxy_header *out,
                                       const char **wrong) {
    if (size > 12 && bytes[12] >> 4 != 2) return bad(wrong, "its version is not 2");
    if (size > 12 && (bytes[12] & 15) > 1) return bad(wrong, "its command is unknown");
    if (size > 13 && (bytes[13] >> 4 > 3 || (bytes[13] & 15) > 2)) return bad(wrong, "its address family is unknown");
    if (size < HEAD_SIZE) return PROXY_MORE;
    static const size_t address_sizes[] = {0, 12, 36, 216};
    const unsigned family = bytes[13] >> 4, transport = bytes[13] & 15;
    const size_t rest = read_16(bytes + 14);
    const bool local = (bytes[12] & 15) == 0;
    if (HEAD_SIZE + rest > PROXY_HEADER_MAX) return bad(wrong, "it is longer than 4,096 bytes");
    if (!local && rest < address_sizes[family]) return bad(wrong, "it is shorter than its addresses");
    if (size < HEAD_SIZE + rest) return PROXY_MORE;
    out->size = HEAD_SIZE + rest;
    out->is_local = local;
    if (local) return PROXY_DONE;
    if (transport == 1 && (family == 1 || family == 2)) {
        const size_t ip_size = family == 1 ? 4 : 16;
        out->has_address = true;
        out->port = (uint16_t)read_16(bytes + HEAD_SIZE + 2 * ip_size);
        inet_ntop(family == 1 ? AF_INET : AF_INET6, bytes + HEAD_SIZE, out->ip, sizeof(out->ip));
    }
    return read_tlvs(bytes, HEAD_SIZE + address_sizes[family], out, wrong);
}

enum proxy_result proxy_decode(const uint8_t *bytes, size_t size, struct proxy_header *out, const char **wrong) {
    struct proxy_header header = {0};
    enum proxy_result result;
    if (size > 0 && memcmp(bytes, signature, size < sizeof(signature) ? size : sizeof(signature)) == 0) {
        result = size < sizeof(signature) ? PROXY_MORE : decode_binary(bytes, size, &header, wrong);
    } else if (size == 0 || memcmp(bytes, "PROXY ", size < 6 ? size : 6) == 0) {
        result = size < 6 ? PROXY_MORE : decode_line(bytes, size, &header, wrong);
    } else {
        return bad(wrong, "it does not begin with a PROXY header");
    }
    if (result == PROXY_DONE) *out = header;
    return result;
}
