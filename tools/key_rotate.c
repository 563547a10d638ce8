/* hobnob key rotate: the next gossip key ring, signed offline. */
#include <stdio.h>
#include <string.h>

#include "auth/token.h"
#include "commands.h"
#include "complain.h"
#include "files.h"
#include "keyfile.h"
#include "options.h"
#include "ringfile.h"

enum option_key { OPTION_ISSUER = 1000, OPTION_GOSSIP, OPTION_OUT, OPTION_FEDERATION, OPTION_AT_ONCE, OPTION_AGAIN };

struct wanted {
    const char *issuer, *gossip, *out, *federation;
    bool at_once, again;
};

static error_t on_option(int key, char *value, struct argp_state *state) {
    struct wanted *wanted = state->input;
    switch (key) {
    case OPTION_ISSUER: wanted->issuer = value; return 0;
    case OPTION_GOSSIP: wanted->gossip = value; return 0;
    case OPTION_OUT: wanted->out = value; return 0;
    case OPTION_FEDERATION: wanted->federation = value; return 0;
    case OPTION_AT_ONCE: wanted->at_once = true; return 0;
    case OPTION_AGAIN: wanted->again = true; return 0;
    case ARGP_KEY_ARG: complain("%s: one word too many; files go behind --gossip and --out", value); return EINVAL;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option options[] = {
    {"issuer", OPTION_ISSUER, "FILE", 0, "The issuer's private key, which signs the ring", 1},
    {"gossip", OPTION_GOSSIP, "FILE", 0,
     "The present keys: the ring that was made last, or gossip.key if there was none yet", 1},
    {"out", OPTION_OUT, "FILE", 0, "Where the next ring is written (mode 0600). It must not exist", 1},
    {"federation", OPTION_FEDERATION, "NAME", 0,
     "The federation.name of the brokers; \"default\" if not given. A ring knows it already", 2},
    {"at-once", OPTION_AT_ONCE, NULL, 0,
     "One new key and no other, for when the present one was stolen: brokers that have not got the ring yet are out of "
     "the gossip until a link brings it",
     3},
    {"again", OPTION_AGAIN, NULL, 0,
     "The same keys under the next number: after a change of issuers, or when two rings had one number", 3},
    {NULL, 0, NULL, 0, NULL, 0},
};
static const struct argp arguments = {
    options,
    on_option,
    NULL,
    "Writes the gossip key ring that follows the present one. A new key comes in three steps, each a ring: first all "
    "accept it, then it seals, then the old one is dropped. Which step is next follows from the ring.\v"
    "Give each ring to one broker, which passes it on over its links:\n"
    "  hobnob key push gossip-1.ring --admin http://127.0.0.1:9100\n"
    "or copy it into the folder inbox of that broker's data_dir. Make the next one when \"hobnob members\" shows its "
    "number at all brokers that are up. One that is down meanwhile gets the ring over a link when it comes back.\n\n"
    "Example:\n"
    "  hobnob key rotate --issuer issuer.key --gossip gossip.key \\\n"
    "      --out gossip-1.ring\n"
    "  hobnob key rotate --issuer issuer.key --gossip gossip-1.ring \\\n"
    "      --out gossip-2.ring\n"
    "  hobnob key rotate --issuer issuer.key --gossip gossip-2.ring \\\n"
    "      --out gossip-3.ring\n",
    NULL,
    NULL,
    NULL};

static int choose_federation(const struct wanted *wanted, struct auth_signed_ring *ring) {
    const char *name = wanted->federation;
    if (name != NULL && (strlen(name) > AUTH_FEDERATION_MAX || !auth_name_valid(name, strlen(name))))
        return complain_usage("--federation %s: is no name; write federation.name of the brokers", name);
    if (ring->number > 0 && name != NULL && strcmp(name, ring->federation) != 0)
        return complain_usage("--federation %s: %s is a ring of federation %s; name the right file, or leave "
                              "--federation out",
                              name, wanted->gossip, ring->federation);
    if (ring->number == 0) snprintf(ring->federation, sizeof ring->federation, "%s", name != NULL ? name : "default");
    return EXIT_GOOD;
}

static bool make_next(const struct wanted *wanted, struct auth_signed_ring *ring) {
    uint8_t fresh[32];
    char reason[160] = "";
    if (!random_bytes(fresh, sizeof fresh)) return false;
    enum auth_result result;
    if (wanted->at_once)
        result = auth_ring_replace(ring, fresh, reason);
    else if (wanted->again)
        result = auth_ring_repeat(ring, reason);
    else
        result = auth_ring_advance(ring, auth_ring_step_after(ring), fresh, reason);
    explicit_bzero(fresh, sizeof fresh);
    if (result != AUTH_OK) complain("%s: %s", wanted->gossip, reason);
    return result == AUTH_OK;
}

static void print_summary(const struct wanted *wanted, const struct auth_signed_ring *ring) {
    unsigned long long number = (unsigned long long)ring->number;
    printf("%s: ring %llu of federation %s, mark %s\n", wanted->out, number, ring->federation,
           ringfile_mark(ring).text);
    if (wanted->at_once)
        puts("A new key alone. Brokers that have not got it yet are out of the gossip until a link brings it.");
    else
        printf("This is %s.\n", ringfile_meaning(ring));
    printf("\nGive it to one broker that is up, which passes it on:\n  hobnob key push %s --admin "
           "http://127.0.0.1:9100\n",
           wanted->out);
    puts("or copy it into the folder inbox of that broker's data_dir.");
    if (auth_ring_step_after(ring) == AUTH_STEP_ACCEPT) {
        printf("\nIt is done when \"hobnob members\" shows ring %llu at all brokers that are up; keep the file for the "
               "next time.\n",
               number);
        return;
    }
    printf("\nWhen \"hobnob members\" shows ring %llu at all brokers that are up, make the next one:\n  hobnob key "
           "rotate --issuer %s --gossip %s --out gossip-%llu.ring\n",
           number, wanted->issuer, wanted->out, number + 1);
    puts("A broker that is down need not be waited for: a link brings it the ring when it is back.");
}

static int rotate(const struct wanted *wanted, struct auth_signed_ring *ring, const struct auth_key *issuer) {
    char text[AUTH_SIGNED_RING_MAX + 1], reason[160] = "";
    int code = choose_federation(wanted, ring);
    if (code != EXIT_GOOD) return code;
    code = EXIT_NO;
    if (!make_next(wanted, ring)) return code;
    if (auth_signed_ring_sign(ring, issuer, text, reason) != AUTH_OK ||
        auth_signed_ring_read(text, strlen(text), ring, reason) != AUTH_OK)
        complain("%s: %s", wanted->out, reason);
    else if (ringfile_write(wanted->out, ring, text))
        code = EXIT_GOOD;
    explicit_bzero(text, sizeof text);
    if (code == EXIT_GOOD) print_summary(wanted, ring);
    return code;
}

int command_key_rotate(int argc, char **argv) {
    struct wanted wanted = {0};
    struct auth_signed_ring ring = {0};
    struct auth_key *issuer = NULL;
    int code;
    if (!options_parse(&arguments, argc, argv, &wanted, &code)) return code;
    if (wanted.issuer == NULL) return complain_usage("--issuer: missing; name the issuer's private key, issuer.key");
    if (wanted.gossip == NULL)
        return complain_usage(
            "--gossip: missing; name the ring that was made last, or gossip.key if there was none yet");
    if (wanted.out == NULL || *wanted.out == '\0')
        return complain_usage("--out: missing; say where the ring goes, such as --out gossip-1.ring");
    if (wanted.at_once && wanted.again)
        return complain_usage("--again: keeps the keys, and --at-once replaces them; leave one out");
    code = EXIT_NO;
    if (keyfile_read(wanted.issuer, true, &issuer) && ringfile_read_any(wanted.gossip, &ring))
        code = rotate(&wanted, &ring, issuer);
    explicit_bzero(&ring, sizeof ring);
    auth_key_free(issuer);
    return code;
}
