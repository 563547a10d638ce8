#include "admin.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "complain.h"
#include "options.h"

#define ANSWER_MAX (16u << 20) /* bytes */
#define CONNECT_TIMEOUT_MS 3000L
#define TIMEOUT_MS 10000L
#define URL_MAX 4096u

struct answer {
    char *bytes;
    size_t size;
};

static size_t on_bytes(char *bytes, size_t one, size_t size, void *context) {
    (void)one;
    struct answer *answer = context;
    if (size > ANSWER_MAX - answer->size) return 0;
    char *grown = realloc(answer->bytes, answer->size + size + 1);
    if (grown == NULL) return 0;
    memcpy(grown + answer->size, bytes, size);
    answer->bytes = grown;
    answer->size += size;
    return size;
}

static void complain_about(CURLcode result, const char *url, const char *detail) {
    switch (result) {
    case CURLE_COULDNT_RESOLVE_HOST: complain("%s: unknown host; check its spelling in --admin", url); return;
    case CURLE_COULDNT_CONNECT:
        complain("%s: nothing answers there; is hobnobd running, and is this its listen.admin? Name another with "
                 "--admin URL",
                 url);
        return;
    case CURLE_OPERATION_TIMEDOUT:
        complain(
            "%s: no answer in time; is the host up, and is this hobnobd's listen.admin? Name another with --admin URL",
            url);
        return;
    case CURLE_WRITE_ERROR:
        complain("%s: the answer is larger than %u MiB or memory is short; ask with curl instead", url,
                 ANSWER_MAX >> 20);
        return;
    case CURLE_GOT_NOTHING:
    case CURLE_RECV_ERROR:
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_HTTP2:
        complain("%s: that is not an admin port; name hobnobd's listen.admin with --admin URL", url);
        return;
    default:
        complain("%s: %s; name hobnobd's listen.admin with --admin URL", url,
                 *detail != '\0' ? detail : curl_easy_strerror(result));
        return;
    }
}

struct question {
    const char *text; /* what is posted; NULL for a GET */
    size_t size;
    bool has_reasons; /* when the broker refuses it, it says why */
};

static bool fetch(const char *url, const char *shown, const struct question *question, struct answer *answer,
                  long *status) {
    char detail[CURL_ERROR_SIZE] = "";
    CURL *curl = curl_easy_init();
    if (curl == NULL) {
        complain("memory is short; try again");
        return false;
    }
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_PROXY,
                     ""); /* an admin port is near; a proxy from the environment would only get in between */
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_TIMEOUT_MS);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, TIMEOUT_MS);
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "hobnob/" HOBNOB_VERSION);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, detail);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_bytes);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, answer);
    struct curl_slist *headers = NULL;
    if (question->text != NULL) {
        headers = curl_slist_append(NULL, "Content-Type: text/plain");
        curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE, (long)question->size);
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, question->text);
        curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    }
    CURLcode result = curl_easy_perform(curl);
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, status);
    curl_easy_cleanup(curl);
    curl_slist_free_all(headers);
    if (result != CURLE_OK) complain_about(result, shown, detail);
    return result == CURLE_OK;
}

/* The broker's own words, if the answer has them. */
static bool complain_with_reason(const struct answer *answer, const char *url) {
    json_t *json = json_loadb(answer->bytes != NULL ? answer->bytes : "", answer->size, 0, NULL);
    const char *reason = json_string_value(json_object_get(json, "error"));
    if (reason != NULL) complain("%s: %s", url, reason);
    json_decref(json);
    return reason != NULL;
}

static json_t *understand(const struct answer *answer, long status, const char *url, const char *name) {
    if (status == 401 || status == 403) {
        complain("%s: a token is needed there; ask on the broker's own host, where listen.admin is on 127.0.0.1", url);
        return NULL;
    }
    if (status != 200) {
        complain("%s: answers %ld for /api/v1/%s; is this hobnobd's listen.admin, and of this version?", url, status,
                 name);
        return NULL;
    }
    json_error_t error;
    json_t *json = json_loadb(answer->bytes != NULL ? answer->bytes : "", answer->size, JSON_REJECT_DUPLICATES, &error);
    if (json == NULL || !json_is_object(json)) {
        complain("%s: the answer is not JSON; that is not an admin port, name hobnobd's listen.admin with --admin URL",
                 url);
        json_decref(json);
        return NULL;
    }
    return json;
}

static json_t *ask(const struct admin_options *options, const char *name, const struct question *question) {
    char url[URL_MAX];
    size_t base_size = strlen(options->url);
    const char *scheme = strstr(options->url, "://") == NULL ? "http://" : "";
    while (base_size > 0 && options->url[base_size - 1] == '/')
        base_size--;
    if ((size_t)snprintf(url, sizeof url, "%s%.*s/api/v1/%s", scheme, (int)base_size, options->url, name) >=
        sizeof url) {
        complain("the URL is too long; write --admin http://HOST:PORT");
        return NULL;
    }
    struct answer answer = {NULL, 0};
    long status = 0;
    json_t *json = NULL;
    if (fetch(url, options->url, question, &answer, &status) &&
        !(question->has_reasons && status != 200 && complain_with_reason(&answer, options->url)))
        json = understand(&answer, status, options->url, name);
    free(answer.bytes);
    return json;
}

json_t *admin_get(const struct admin_options *options, const char *name) {
    const struct question none = {NULL, 0, false};
    return ask(options, name, &none);
}

json_t *admin_ask(const struct admin_options *options, const char *query) {
    const struct question question = {NULL, 0, true};
    return ask(options, query, &question);
}

json_t *admin_post(const struct admin_options *options, const char *name, const char *text, size_t size) {
    const struct question question = {text, size, true};
    return ask(options, name, &question);
}

static error_t on_option(int key, char *value, struct argp_state *state) {
    struct admin_options *options = state->input;
    switch (key) {
    case 'a': options->url = value; return 0;
    case 'j': options->json = true; return 0;
    case ARGP_KEY_ARG: complain("%s: one word too many; this command takes options only", value); return EINVAL;
    default: return ARGP_ERR_UNKNOWN;
    }
}

bool admin_parse(int argc, char **argv, const char *about, struct admin_options *options, int *code) {
    static const struct argp_option known[] = {
        {"admin", 'a', "URL", 0, "The broker's listen.admin, http://127.0.0.1:9100 if not given", 0},
        {"json", 'j', NULL, 0, "Print the answer as JSON, for programs", 0},
        {NULL, 0, NULL, 0, NULL, 0},
    };
    const struct argp arguments = {known, on_option, NULL, about, NULL, NULL, NULL};
    *options = (struct admin_options){"http://127.0.0.1:9100", false};
    return options_parse(&arguments, argc, argv, options, code) && admin_url_good(options, code);
}

bool admin_url_good(const struct admin_options *options, int *code) {
    bool has_scheme = strstr(options->url, "://") != NULL;
    if (*options->url != '\0' &&
        (!has_scheme || strncmp(options->url, "http://", 7) == 0 || strncmp(options->url, "https://", 8) == 0))
        return true;
    *code = complain_usage("--admin %s: is not a URL; write http://HOST:PORT", options->url);
    return false;
}
