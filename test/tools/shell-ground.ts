// A folder in which `make` writes down that it ran, and a real bash that runs texts there. It shows which texts run the command.
import { spawnSync } from 'node:child_process'
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Each command in a bash of its own, waited for to the end of all that it started. What ran is in a file of its own. */
const RUN_EACH = `
  i=0
  for command; do
    : > "$BIN/ran"
    printf '' | timeout -k 1 5 bash -c "$command" 2>&1 | cat > /dev/null
    mv "$BIN/ran" "$BIN/ran.$i"
    i=$((i + 1))
  done`

/** They change the user where they are installed; here they only run the rest of their words. */
const RUN_REST = '#!/bin/sh\nwhile :; do case $1 in -u) shift 2;; -*) shift;; *) break;; esac; done\nexec env "$@"\n'

/** Whether a real bash that was given the text ran `make deploy`, for each of them. */
export function whichRan(commands: readonly string[]): readonly boolean[] {
  const folder = mkdtempSync(join(tmpdir(), 'terret-shell-'))
  try {
    writeFileSync(join(folder, 'make'), '#!/bin/sh\necho "$@" >> "$BIN/ran"\n')
    for (const name of ['sudo', 'doas', 'busybox']) writeFileSync(join(folder, name), RUN_REST)
    for (const name of ['make', 'sudo', 'doas', 'busybox']) chmodSync(join(folder, name), 0o755)
    const env = { PATH: `${folder}:${process.env['PATH'] ?? ''}`, BIN: folder, M: 'make', HOME: folder }
    spawnSync('bash', ['-c', RUN_EACH, 'bash', ...commands], { cwd: folder, env })
    return commands.map((_, i) => /\bdeploy\b/.test(readFileSync(join(folder, `ran.${i}`), 'utf8')))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
