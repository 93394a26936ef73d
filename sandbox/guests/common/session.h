/* Sessions: how the host keeps an interpreter alive between commands.
 *
 * A module that offers them exports the four functions below beside `_start`. The host calls
 * session_open once in a fresh instance, then, for each command, writes its text to what
 * session_buffer returns and calls session_run. Between calls everything that the session is lies in
 * the exported memory and the exported globals, so that a copy of these is a copy of the session.
 */
#ifndef SPAR_SESSION_H
#define SPAR_SESSION_H

#define SESSION_ENDED 256 /* added to the result of session_run: the command ended the session */

void session_open(void);
char *session_buffer(int len);
int session_run(int len);
const char *session_cwd(void);

#endif
