/* The lines of `causeway doctor`: findings and settings, as text or JSON. */
#include "apps/doctor/doctor.h"

#include <stdio.h>

#include "apps/cli/cli.h"

void doctor_report(struct doctor *doctor, const char *topic, const char *what, enum doctor_verdict verdict,
                   const char *value, const char *todo)
{
    static const char *const names[] = {[DOCTOR_GOOD] = "good", [DOCTOR_NOTE] = "note", [DOCTOR_MISSING] = "missing"};
    static const char *const marks[] = {[DOCTOR_GOOD] = "  ", [DOCTOR_NOTE] = "  ", [DOCTOR_MISSING] = "! "};
    doctor->missing += verdict == DOCTOR_MISSING;
    if (doctor->json) {
        json_t *line = app_json_new();
        app_json_text(line, "topic", topic);
        app_json_text(line, "what", what);
        app_json_text(line, "verdict", names[verdict]);
        app_json_text(line, "value", value);
        if (todo != NULL) {
            app_json_text(line, "todo", todo);
        }
        app_json_emit(line);
        return;
    }
    printf("%s%-9s %-22s %s\n", marks[verdict], topic, what, value);
    if (todo != NULL) {
        printf("  %-9s %-22s -> %s\n", "", "", todo);
    }
}

void doctor_setting(struct doctor *doctor, const char *name, const char *value, const char *origin, const char *meaning)
{
    if (doctor->json) {
        json_t *line = app_json_new();
        app_json_text(line, "topic", "setting");
        app_json_text(line, "what", name);
        app_json_text(line, "value", value);
        app_json_text(line, "origin", origin);
        app_json_text(line, "meaning", meaning);
        app_json_emit(line);
        return;
    }
    printf("  %-9s %-30s %-14s %-8s %s\n", "setting", name, value, origin, meaning);
}
