// Command rules against every way to write a command: denied where its words can be read, asked where they cannot.
import { spawnSync } from 'node:child_process'
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { judgeCall, type Rule } from '../../src/tools/policy/policy.ts'
import { FORMS } from './policy-forms.ts'

const DENY: Rule = { effect: 'deny', command: 'make deploy *' }
const verdict = async (command: string, ...rules: Rule[]): Promise<string> =>
  (await judgeCall({ rules }, { tool: 'bash', args: { command }, approval: 'auto' })).type

let folder = ''
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'terret-forms-'))
  writeFileSync(join(folder, 'make'), '#!/bin/sh\necho "$@" >> "$BIN/ran"\n')
  chmodSync(join(folder, 'make'), 0o755)
  const env = { PATH: `${folder}:${process.env['PATH'] ?? ''}`, BIN: folder, M: 'make' }
  spawnSync('bash', ['-c', RUN_EACH, 'bash', ...FORMS.map(([, command]) => command)], { cwd: folder, env })
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Each command in a bash of its own, waited for to the end of all that it started. What ran is in a file of its own. */
const RUN_EACH = `
  i=0
  for command; do
    : > "$BIN/ran"
    printf '' | bash -c "$command" 2>&1 | cat > /dev/null
    mv "$BIN/ran" "$BIN/ran.$i"
    i=$((i + 1))
  done`

function ranBy(command: string): string {
  const i = FORMS.findIndex(([, form]) => form === command)
  return readFileSync(join(folder, `ran.${i}`), 'utf8')
}

describe('a rule that denies a command', () => {
  it.each(FORMS)('B-POLICY-27: says %s to %j, which a real bash runs', async (expected, command) => {
    expect(ranBy(command)).toMatch(/\bdeploy\b/)
    expect(await verdict(command, DENY)).toBe(expected)
    // A rule that allows never weakens this.
    expect(await verdict(command, DENY, { effect: 'allow' })).toBe(expected)
    expect(await verdict(command, { effect: 'ask', command: 'make deploy *' }, { effect: 'allow' })).toBe('ask')
  })

  it.each([
    'make build',
    'make build>deploy',
    'ls *.ts',
    'echo "$HOME is my home"',
    'grep -rE "foo|.*bar" src',
    'git commit -m "fix (a) & b; it\'s done"',
    'for f in *.ts; do wc -l "$f"; done',
    '[ -f x ] && [[ -d y ]] && cat x',
    'if [ "$A" = b ]; then ls; fi',
    'npm test 2>&1 | tail -5',
    'bash scripts/check.sh',
    'node script.js $X',
    'cat <<EOF > notes.txt\nsome text\nEOF',
    'awk "{print $1}" x',
    'deploy make',
    'find . -name "*.ts" | xargs grep x',
    '$HOME/bin/tool build',
  ])('B-POLICY-27: leaves %j alone', async (command) => {
    expect(await verdict(command, DENY)).toBe('allow')
  })
})
