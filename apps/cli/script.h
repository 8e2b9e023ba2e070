/* Commands that are Python scripts. They are next to the command, as measuring programs are (app_job_program). */
#pragma once

/* Continues as `script`, a path such as "paper/paper.py". Its arguments are the path of this command, then those of
 * argv but the first. Returns only on failure: an exit code, after reporting. */
int app_script_become(const char *script, int argc, char **argv);
