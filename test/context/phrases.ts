// Lines that say that something went wrong, as programs write them, and lines that say something unusual without a word for it: for
// tests that put one of them into the middle of another output.

export const FAILURES: readonly string[] = [
  'Permission denied',
  'Segmentation fault (core dumped)',
  'Killed',
  'CONFLICT (content): Merge conflict in src/app.ts',
  'No space left on device',
  'ORA-00942: table or view does not exist',
  'Process exited with code 137',
  'exit status 2',
  'connect ECONNREFUSED 10.0.0.7:5432',
  'read ECONNRESET',
  'EACCES: permission denied, open config.json',
  'ENOENT: no such file or directory',
  'bash: terraform: command not found',
  'fatal: not a git repository (or any of the parent directories): .git',
  'panic: runtime error: index out of range [5] with length 3',
  'java.lang.OutOfMemoryError: Java heap space',
  'Out of memory: Killed process 991 (java)',
  'Traceback (most recent call last):',
  'KeyError: user_id',
  'Unhandled promise rejection',
  'certificate has expired',
  'SSL handshake failed',
  'HTTP/1.1 503 Service Unavailable',
  'status=502 upstream=10.0.0.9',
  'request timed out after 30000 ms',
  'deadlock detected',
  'duplicate key value violates unique constraint "users_pkey"',
  'CrashLoopBackOff',
  'Back-off restarting failed container',
  'container is unhealthy',
  'transaction rolled back',
  'disk quota exceeded',
  'too many open files',
  'undefined reference to `main`',
  'cannot find module left-pad',
  'could not resolve host: example.com',
  'Access forbidden: role reader may not write',
  'checksum mismatch for go.sum',
  'rejected: non-fast-forward',
  'assertion failed: left == right',
  'filesystem remounted read-only',
  'CVE-2026-1234 in libxml2',
]

/** Nothing in these sounds like trouble. */
export const UNUSUAL: readonly string[] = [
  'the primary is now db-7',
  'maintenance window begins tonight',
  'switched to the replica in Oslo',
  'using the fallback certificate of 2019',
  'owner changed from alice to mallory',
  'feature flag new-billing is on',
  'rate plan of tenant blue is custom',
  'clock was moved by two hours',
]

/** A text with a line in its middle. */
export function withLine(text: string, line: string): string {
  const lines = text.split('\n')
  return [...lines.slice(0, lines.length >> 1), line, ...lines.slice(lines.length >> 1)].join('\n')
}
