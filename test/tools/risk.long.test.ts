// How risky a command is: a table of commands, and what must hold for any command. The sandbox is the boundary, not this.
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import fc from 'fast-check'
import { rolldown } from 'rolldown'
import { afterAll, expect, it } from 'vitest'
import { classifyCommand, type Risk } from '../../src/tools/shell/risk/classify-command.ts'
import { ASKED, BLOCKED, BOUNDED, SAFE } from './risk-table.ts'
import { runs } from '../runs.ts'

const LEVELS: readonly Risk['level'][] = ['safe_read', 'bounded_write', 'needs_approval', 'blocked']
const rank = async (command: string): Promise<number> => LEVELS.indexOf((await classifyCommand(command)).level)

const folder = mkdtempSync(join(tmpdir(), 'terret-risk-'))
// The seeds are fixed: bash and the grammar are large, and a new disagreement must fail where it was made.
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Those that do not get the level, with what they got instead. */
async function others(level: Risk['level'], commands: readonly string[]): Promise<readonly unknown[]> {
  const risks = await Promise.all(commands.map(async (command) => ({ command, ...(await classifyCommand(command)) })))
  return risks.filter((risk) => risk.level !== level)
}

it('B-RISK-1: a command of known programs that only read is a safe read', async () => {
  expect(await others('safe_read', SAFE)).toEqual([])
})

it('B-RISK-14: a command that names a protected file and only reads it is a safe read', async () => {
  expect(
    await others('safe_read', ['cat .envrc', 'ls .husky', 'git diff .envrc', 'grep x .vscode/settings.json']),
  ).toEqual([])
  expect(await others('needs_approval', ['touch .envrc', 'cd .git/hooks && touch x', 'sort -o .envrc x'])).toEqual([])
})

it('B-RISK-2: whatever else a sandbox bounds is a bounded write, unknown programs too', async () => {
  expect(await others('bounded_write', BOUNDED)).toEqual([])
})

it('B-RISK-3: what destroys work, reaches out, lasts, or hides what it does needs approval', async () => {
  expect(await others('needs_approval', ASKED)).toEqual([])
})

it('B-RISK-4: what would end the machine or the home folder is blocked, however it is spelt or wrapped', async () => {
  expect(await others('blocked', BLOCKED)).toEqual([])
})

it('B-RISK-5: the reasons of a level are never missing, and say what was found', async () => {
  for (const command of [...BOUNDED, ...ASKED, ...BLOCKED]) {
    const { reasons } = await classifyCommand(command)
    expect(reasons.length).toBeGreaterThan(0)
    for (const reason of reasons) expect(reason.length).toBeGreaterThan(5)
  }
  expect(await classifyCommand('ls; git push; npm test')).toEqual({
    level: 'needs_approval',
    reasons: ['git push sends data to another machine.'],
  })
})

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`
const heredoc = (text: string): string => `bash <<'X${text.length}'\n${text}\nX${text.length}\n`
/** Each takes any command and makes another one that runs it. */
const WRAPPINGS: readonly ((command: string) => string)[] = [
  (command) => `sh -c ${quoted(command)}`,
  (command) => `bash -lc ${quoted(command)}`,
  (command) => `sudo -u root sh -c ${quoted(command)}`,
  (command) => `env A=1 sh -c ${quoted(command)}`,
  (command) => `timeout -k 1 5 bash -c ${quoted(command)}`,
  (command) => `echo x | xargs -n 1 sh -c ${quoted(command)}`,
  (command) => `nohup nice -n 5 sh -c ${quoted(command)}`,
  (command) => `command exec sh -c ${quoted(command)}`,
  (command) => `time eval ${quoted(command)}`,
  (command) => `(${command}\n)`,
  (command) => `{ ${command}\n}`,
  (command) => `echo "$(${command}\n)"`,
  (command) => `cat <(${command}\n)`,
  (command) => `ls && if true; then ${command}\nfi`,
  (command) => `for i in 1 2; do ${command}\ndone`,
  (command) => `case a in a) ${command}\n;; esac`,
  (command) => `f() { ${command}\n}; f`,
  (command) => `ls | { ${command}\n}`,
  (command) => `echo ${quoted(command)} | bash`,
  heredoc,
]

it('B-RISK-6: a blocked command stays blocked in any number of wrappings', async () => {
  const layers = fc.array(fc.constantFrom(...WRAPPINGS), { minLength: 1, maxLength: 4 })
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...BLOCKED), layers, async (command, wrappings) => {
      const wrapped = wrappings.reduce((text, wrap) => wrap(text), command)
      expect((await classifyCommand(wrapped)).level).toBe('blocked')
    }),
    { numRuns: runs(300), seed: 6 },
  )
})

it('B-RISK-6: a blocked command is found behind a hundred here-documents', async () => {
  const nested = Array.from({ length: 100 }).reduce<string>((text) => heredoc(text), 'rm -rf /')
  expect((await classifyCommand(nested)).level).toBe('blocked')
})

/** Not those that swallow what is put behind them: comments and here-documents, and what is no bash. */
const JOINABLE = [...SAFE, ...BOUNDED, ...ASKED, ...BLOCKED].filter(
  (command) => !/#|<<|\\|^if ls$|\)$|^"$|&$/.test(command),
)

it('B-RISK-7: two commands one after the other are as risky as the riskier one', async () => {
  const command = fc.constantFrom(...JOINABLE)
  await fc.assert(
    fc.asyncProperty(command, command, fc.constantFrom('; ', '\n', ' && ', ' || '), async (first, second, join) => {
      const both = `${first}${join}${second}`
      expect(await rank(both)).toBe(Math.max(await rank(first), await rank(second)))
    }),
    { numRuns: runs(300), seed: 6 },
  )
})

it('B-RISK-7: safe commands before and behind never lower the level', async () => {
  const safe = fc.array(fc.constantFrom('ls', 'pwd', 'git status', "echo 'x'"), { maxLength: 5 })
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...JOINABLE), safe, safe, async (command, before, behind) => {
      const all = [...before, command, ...behind].join('\n')
      expect(await rank(all)).toBeGreaterThanOrEqual(await rank(command))
    }),
    { numRuns: runs(200), seed: 7 },
  )
})

it('B-RISK-8: no number of commands hides a blocked one', async () => {
  for (const count of [1, 49, 50, 51, 1000, 10_000]) {
    for (const join of ['; ', ' && ', '\n', ' || ', ' | ']) {
      const many = `${`true${join}`.repeat(count)}rm -rf /`
      expect({ count, join, level: (await classifyCommand(many)).level }).toEqual({ count, join, level: 'blocked' })
    }
  }
})

it('B-RISK-9: what cannot be read for sure needs approval', async () => {
  const unreadable = [
    'a'.repeat(300_000),
    'ls \0',
    'ls \x1b[0m',
    'if true; then',
    "echo 'x",
    'ls ;;',
    '<'.repeat(50_000),
    '[[f()'.repeat(1000),
    'eval '.repeat(9000),
  ]
  expect(await others('needs_approval', unreadable)).toEqual([])
})

it('B-RISK-9: any text has a level, and none throws', async () => {
  const pieces = fc.constantFrom(
    'ls',
    'rm',
    ' ',
    ';',
    '|',
    '(',
    ')',
    '{',
    '}',
    '$',
    '"',
    "'",
    '`',
    '<',
    '<<E\n',
    '\n',
    '\\',
  )
  const soup = fc.array(fc.oneof(pieces, fc.string({ unit: 'binary', maxLength: 5 })), { maxLength: 40 })
  await fc.assert(
    fc.asyncProperty(soup, async (parts) => {
      expect(LEVELS).toContain((await classifyCommand(parts.join(''))).level)
    }),
    { numRuns: runs(100), seed: 7 },
  )
})

/** What bash does with a text, and a forbidden program that it can run without harm: the only one on its path. */
const canary = join(folder, 'canary')
mkdirSync(join(folder, 'bin'))
mkdirSync(join(folder, 'empty'))
writeFileSync(join(folder, 'bin', 'reboot'), '#!/bin/bash\n: > "$CANARY"\n', { mode: 0o755 })

function bash(...args: readonly string[]): number | null {
  const env = { PATH: join(folder, 'bin'), CANARY: canary }
  return spawnSync('/bin/bash', args, { cwd: join(folder, 'empty'), env, stdio: 'ignore', timeout: 10_000 }).status
}

// No slash and no `-p`, so that nothing but the one program can be found.
const TOKENS = (
  'reboot re boot echo true x # $( ) ` ( { } | || && & \\ \' " $ ${ $" if then fi do done while case esac ;; ! [[ ]] ' +
  '(( )) eval <<< <( = x= * ? [ ] $x f() f command $(( , exec \\\\ < -c time coproc else let declare trap x+= set - --'
).split(' ')
const SPACES = [
  ' ',
  ' ',
  ' ',
  '\n',
  '\t',
  '; ',
  '',
  '',
  '\\\n',
  ' <<E\n',
  " <<'E'\n",
  '\nE\n',
  '\u00a0',
  "$'\\x72",
  'for i in ',
]
const soup = fc
  .array(fc.tuple(fc.constantFrom(...TOKENS), fc.constantFrom(...SPACES)), { minLength: 1, maxLength: 8 })
  .map((parts) => parts.flat().join(''))

it('B-RISK-10: a text that makes bash run a forbidden program is never let through', async () => {
  let ran = 0
  await fc.assert(
    fc.asyncProperty(soup, soup, async (before, behind) => {
      const command = `${before}reboot${behind}`
      const { level } = await classifyCommand(command)
      if (level === 'blocked' || level === 'needs_approval') return
      ran += 1
      bash('-c', command)
      expect(existsSync(canary)).toBe(false)
    }),
    { numRuns: runs(700), seed: 10 },
  )
  expect(ran).toBeGreaterThan(3)
})

it('B-RISK-10: the forbidden program of these tests is one that bash would run', async () => {
  bash('-c', 'reboot')
  expect(existsSync(canary)).toBe(true)
  rmSync(canary)
})

it('B-RISK-11: what bash refuses to parse is never a safe read', async () => {
  const readers = fc.constantFrom('ls', 'cat a', 'echo x', 'git status', 'true', 'pwd')
  await fc.assert(
    fc.asyncProperty(fc.array(fc.oneof(readers, soup), { minLength: 1, maxLength: 4 }), async (parts) => {
      const command = parts.join(' ')
      if ((await classifyCommand(command)).level === 'safe_read') expect(bash('-n', '-c', command)).toBe(0)
    }),
    { numRuns: runs(250), seed: 11 },
  )
})

it('B-RISK-12: a word means what bash makes of it', async () => {
  const spellings = "r m \\r 'r' \"m\" '' \"\" $'r' $'\\x6d' $'\\162' $\"m\" $'\\u0072' \\m"
  const others = 'x - \\\\ "\\$" \'$\' "\\\\" $\'\\n\' "\\r" \'\\r\' "`true`" \\$'
  const part = fc.constantFrom(...`${spellings} ${others}`.split(' '))
  const words = fc.sample(fc.array(part, { minLength: 2, maxLength: 4 }), { seed: 12, numRuns: runs(500) })
  const lines = words.map((parts) => parts.join(''))
  const script = lines.map((word) => `printf '%s\\0' ${word}`).join('\n')
  const said = spawnSync('/bin/bash', ['-c', script], { encoding: 'utf8' }).stdout.split('\0')
  expect(said.length).toBe(lines.length + 1)
  for (const [i, word] of lines.entries()) {
    const { level } = await classifyCommand(`${word} -rf /`)
    // Words with a part that is computed are asked for; all others must be read as bash reads them.
    const right = said[i] === 'rm' ? level === (word.includes('`') ? 'needs_approval' : 'blocked') : level !== 'blocked'
    expect({ word, level, right }).toEqual({ word, level, right: true })
  }
})

it('B-RISK-13: the built parser finds its parts beside it, and without them every command needs approval', async () => {
  const bundle = await rolldown({
    input: 'src/tools/shell/risk/classify-command.ts',
    platform: 'node',
    external: [/^node:/],
    checks: { eval: false },
  })
  await bundle.write({
    dir: join(folder, 'built', 'chunks'),
    format: 'esm',
    entryFileNames: 'risk.mjs',
    chunkFileNames: '[name].mjs',
  })
  await bundle.close()
  const module = pathToFileURL(join(folder, 'built', 'chunks', 'risk.mjs')).href
  const script = `import { classifyCommand } from '${module}'; console.log(JSON.stringify([await classifyCommand('ls'), await classifyCommand('ls')]))`
  const levels = (): unknown => {
    const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
      encoding: 'utf8',
      cwd: folder,
    })
    return (JSON.parse(stdout) as Risk[]).map(({ level }) => level)
  }
  expect(levels()).toEqual(['needs_approval', 'needs_approval'])
  cpSync('node_modules/web-tree-sitter/web-tree-sitter.wasm', join(folder, 'built', 'wasm', 'web-tree-sitter.wasm'))
  expect(levels()).toEqual(['needs_approval', 'needs_approval'])
  const grammar = 'node_modules/@vscode/tree-sitter-wasm/wasm/tree-sitter-bash.wasm'
  cpSync(grammar, join(folder, 'built', 'wasm', 'tree-sitter-bash.wasm'))
  expect(levels()).toEqual(['safe_read', 'safe_read'])
})
