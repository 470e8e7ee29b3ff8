/* Decodes every event of an OTF2 archive with libotf2's readers of single locations and prints how many there are of each record, and the sum of
   their times, as the example decode_events of clc-otf2 does. callbacks.h is made of the installed headers by decoding.py: `event_counts`,
   `event_names`, and `register_callbacks`, whose callbacks take all fields of their record. */
#include <inttypes.h>
#include <otf2/otf2.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t sum_of_times;
/* What callbacks take of the fields goes here, so that no compiler can leave it out. */
static volatile uint64_t taken;

#include "callbacks.h"

static uint64_t *locations;
static size_t number_of_locations, capacity;

static void check(OTF2_ErrorCode code, const char *what) {
    if (code != OTF2_SUCCESS) {
        fprintf(stderr, "%s: %s\n", what, OTF2_Error_GetDescription(code));
        exit(1);
    }
}

static OTF2_CallbackCode location(void *data, OTF2_LocationRef self, OTF2_StringRef name, OTF2_LocationType type, uint64_t events,
                                  OTF2_LocationGroupRef group) {
    (void)data, (void)name, (void)type, (void)events, (void)group;
    if (number_of_locations == capacity) {
        capacity = capacity ? 2 * capacity : 64;
        locations = realloc(locations, capacity * sizeof *locations);
        if (!locations)
            abort();
    }
    locations[number_of_locations++] = self;
    return OTF2_CALLBACK_SUCCESS;
}

int main(int argc, char **argv) {
    OTF2_Reader *reader = argc == 2 ? OTF2_Reader_Open(argv[1]) : NULL;
    if (!reader) {
        fprintf(stderr, "usage: %s ANCHOR.otf2\n", argv[0]);
        return 2;
    }
    check(OTF2_Reader_SetSerialCollectiveCallbacks(reader), "serial reading");

    OTF2_GlobalDefReader *definitions = OTF2_Reader_GetGlobalDefReader(reader);
    OTF2_GlobalDefReaderCallbacks *wanted = OTF2_GlobalDefReaderCallbacks_New();
    check(OTF2_GlobalDefReaderCallbacks_SetLocationCallback(wanted, location), "callback of locations");
    check(OTF2_Reader_RegisterGlobalDefCallbacks(reader, definitions, wanted, NULL), "callbacks of definitions");
    OTF2_GlobalDefReaderCallbacks_Delete(wanted);
    uint64_t read = 0;
    check(OTF2_Reader_ReadAllGlobalDefinitions(reader, definitions, &read), "global definitions");

    for (size_t i = 0; i < number_of_locations; i++)
        check(OTF2_Reader_SelectLocation(reader, locations[i]), "location");
    /* Without local definitions ids are not mapped to global ones; clc-otf2 does that too. */
    int local = OTF2_Reader_OpenDefFiles(reader) == OTF2_SUCCESS;
    check(OTF2_Reader_OpenEvtFiles(reader), "event files");
    OTF2_EvtReaderCallbacks *callbacks = OTF2_EvtReaderCallbacks_New();
    register_callbacks(callbacks);
    for (size_t i = 0; i < number_of_locations; i++) {
        if (local) {
            OTF2_DefReader *mappings = OTF2_Reader_GetDefReader(reader, locations[i]);
            if (mappings) {
                check(OTF2_Reader_ReadAllLocalDefinitions(reader, mappings, &read), "local definitions");
                check(OTF2_Reader_CloseDefReader(reader, mappings), "local definitions");
            }
        }
        OTF2_EvtReader *events = OTF2_Reader_GetEvtReader(reader, locations[i]);
        check(OTF2_Reader_RegisterEvtCallbacks(reader, events, callbacks, NULL), "callbacks of events");
        check(OTF2_Reader_ReadAllLocalEvents(reader, events, &read), "events");
        check(OTF2_Reader_CloseEvtReader(reader, events), "events");
    }
    OTF2_EvtReaderCallbacks_Delete(callbacks);
    for (size_t i = 0; i < sizeof event_counts / sizeof *event_counts; i++)
        if (event_counts[i])
            printf("%s %" PRIu64 "\n", event_names[i], event_counts[i]);
    printf("times %" PRIu64 "\n", sum_of_times);
    check(OTF2_Reader_Close(reader), "closing");
    return 0;
}
