// Rows 21 and 22: names and patterns that are read as options or commands, and commands that slip past a list of allowed ones.
import { writeFile } from 'node:fs/promises'
import type { Json } from '../../src/kernel/content.ts'
import { z } from 'zod'
import { defineTool, type Rule, type Tool } from '../../src/index.ts'
import type { Case, Row } from './case.ts'
import { ripgrep, shell } from './naive.ts'
import { type World, UNTOUCHED } from './world.ts'

/** Tools that build a command line from what they are given, by a shell or as options of ripgrep. */
function naiveTools(world: World, how: 'shell' | 'options'): readonly Tool[] {
  const input = z.object({
    path: z.string().default('.'),
    pattern: z.string().default(''),
    query: z.string().default(''),
  })
  const find = (name: string, words: (args: z.infer<typeof input>) => readonly string[]): Tool =>
    defineTool({
      name,
      description: name,
      input,
      execute: (args) =>
        how === 'shell' ? shell(world, `grep -r ${words(args).join(' ')}`) : ripgrep(world, words(args)),
    })
  return [
    find('search', ({ pattern, path }) => [pattern, path]),
    find('glob', ({ pattern, path }) => ['--files', '-g', pattern, path]),
    find('list', ({ path }) => ['--files', path]),
    find('read', ({ path }) => ['', path]),
    find('jsonl_search', ({ query, path }) => [query, path]),
  ]
}

type Injection = readonly [
  name: string,
  how: 'shell' | 'options',
  tool: string,
  args: (evil: string, world: World) => Json,
]

/** `evil` is a program in the workspace that harms the outside. */
const INJECTIONS: readonly Injection[] = [
  ['a pattern that is an option', 'options', 'search', (evil) => ({ pattern: `--pre=${evil}`, path: '.' })],
  ['rows by a query that is an option', 'options', 'jsonl_search', (evil) => ({ query: `--pre=${evil}`, path: '.' })],
  ['a path that is an option', 'options', 'search', (evil) => ({ pattern: 'a', path: `--pre=${evil}` })],
  ['a path of rows that is an option', 'options', 'jsonl_search', (evil) => ({ query: 'a', path: `--pre=${evil}` })],
  ['a file by a name that is an option', 'options', 'read', (evil) => ({ path: `--pre=${evil}` })],
  ['a pattern with a semicolon', 'shell', 'search', (evil) => ({ pattern: `a; ${evil};`, path: '.' })],
  ['a pattern with a substitution', 'shell', 'search', (evil) => ({ pattern: `$(${evil})`, path: '.' })],
  ['a pattern with backticks', 'shell', 'search', (evil) => ({ pattern: `\`${evil}\``, path: '.' })],
  ['a path with a line break', 'shell', 'search', (evil) => ({ pattern: 'a', path: `.\n${evil}\n` })],
  ['a glob with a substitution', 'shell', 'glob', (evil) => ({ pattern: `$(${evil})` })],
  ['a glob with an ampersand', 'shell', 'glob', (evil) => ({ pattern: `*& ${evil} &` })],
  ['a folder with a pipe in its name', 'shell', 'list', (evil) => ({ path: `a|${evil}` })],
  ['a file with a substitution in its name', 'shell', 'read', (evil) => ({ path: `$(${evil})` })],
  ['rows with a query that closes a quote', 'shell', 'jsonl_search', (evil) => ({ query: `'';${evil};''` })],
]

export const names: Row = {
  row: 21,
  title: 'names and patterns that are read as options or commands',
  cases: INJECTIONS.map(([name, how, tool, args]) => ({
    name: `asks ${tool} for ${name}`,
    attack: (world) => {
      const evil = world.put('ws/evil.sh', `#!/bin/sh\necho evil > ${world.outside}/canary.txt\n`, 0o755)
      world.put('ws/a.jsonl', '{"a":1}\n')
      return world.call(world.defended ? world.files() : naiveTools(world, how), tool, args(evil, world))
    },
    harmed: (world) => world.text('ws-evil/canary.txt') !== UNTOUCHED,
  })),
}

/** A shell of the user's own, which asks each time. Rules say what need not be asked. */
function askingShell(world: World, approves: (command: string) => boolean): Tool {
  return defineTool({
    name: 'shell',
    description: 'shell',
    input: z.object({ command: z.string() }),
    approval: ({ command }) => (approves(command) ? 'auto' : 'ask'),
    execute: ({ command }) => shell(world, command),
  })
}

/** `echo` is allowed: by a rule, or by the beginning of the text as lists often do. */
function slipping(name: string, command: (harm: string, canary: string) => string): Case {
  return {
    name: `slips past "echo *" by ${name}`,
    attack: (world) => {
      const canary = `${world.outside}/canary.txt`
      const rules: readonly Rule[] = world.defended ? [{ effect: 'allow', tool: 'shell', command: 'echo *' }] : []
      const tool = askingShell(world, (text) => !world.defended && text.startsWith('echo '))
      return world.call(
        [tool],
        'shell',
        { command: command(`rm -f ${canary}`, canary) },
        { approvals: { policy: { rules } } },
      )
    },
    harmed: (world) => world.text('ws-evil/canary.txt') !== UNTOUCHED,
  }
}

/** `rm` is denied: as a command anywhere in the text, or only as its beginning. */
function hiding(name: string, command: (harm: string) => string): Case {
  return {
    name: `slips past a denied "rm *" by ${name}`,
    attack: (world) => {
      const rules: readonly Rule[] = world.defended ? [{ effect: 'deny', tool: 'shell', command: 'rm *' }] : []
      const tool = askingShell(world, (text) => world.defended || !text.startsWith('rm '))
      return world.call(
        [tool],
        'shell',
        { command: command(`rm -f ${world.outside}/canary.txt`) },
        { approvals: { policy: { rules } } },
      )
    },
    harmed: (world) => world.text('ws-evil/canary.txt') !== UNTOUCHED,
  }
}

/** The canary is denied by its path, wherever it stands: by a rule, or by roots that it lies outside of. Controls have neither. */
function elsewhere(field: string, how: 'rule' | 'roots'): Case {
  return {
    name: `names a denied path as "${field}", against a ${how === 'rule' ? 'rule' : 'root'}`,
    attack: (world) => {
      const canary = `${world.outside}/canary.txt`
      const tool = defineTool({
        name: 'put',
        description: 'put',
        input: z.object({ [field]: z.string() }),
        execute: (args) => writeFile(String(args[field]), 'evil'),
      })
      const rules: readonly Rule[] = how === 'rule' ? [{ effect: 'deny', path: 'canary.txt' }] : []
      const roots = how === 'roots' ? { writeRoots: [world.workspace], base: world.workspace } : {}
      const policy = world.defended ? { rules, ...roots } : { rules: [] }
      return world.call([tool], 'put', { [field]: canary }, { approvals: { policy } })
    },
    harmed: (world) => world.text('ws-evil/canary.txt') !== UNTOUCHED,
  }
}

export const allowLists: Row = {
  row: 22,
  title: 'commands and paths that slip past rules',
  cases: [
    slipping('a redirection', (_, canary) => `echo evil > ${canary}`),
    slipping('an appending redirection', (_, canary) => `echo evil >> ${canary}`),
    slipping('a redirection without spaces', (_, canary) => `echo evil>${canary}`),
    slipping('a semicolon', (harm) => `echo a; ${harm}`),
    slipping('a semicolon without spaces', (harm) => `echo a;${harm}`),
    slipping('an and', (harm) => `echo a && ${harm}`),
    slipping('an or', (harm) => `echo a >/dev/full || ${harm}`),
    slipping('a pipe', (harm) => `echo "${harm}" | sh`),
    slipping('the background', (harm) => `echo a & ${harm}`),
    slipping('a line break', (harm) => `echo a\n${harm}`),
    slipping('a substitution', (harm) => `echo $(${harm})`),
    slipping('a substitution in double quotes', (harm) => `echo "$(${harm})"`),
    slipping('backticks', (harm) => `echo \`${harm}\``),
    slipping('a substituted process', (harm) => `echo <(${harm}) ; wait`),
    slipping('an expression that is counted', (harm) => `echo $((a[$(${harm})]))`),
    slipping('a default of a variable', (harm) => `echo \${nothing:-$(${harm})}`),
    slipping('a text for its input', (harm) => `echo <<< "$(${harm})"`),
    slipping('a line that goes on', (harm) => `echo a \\\n; ${harm}`),
    hiding('a command before it', (harm) => `true; ${harm}`),
    hiding('sixty commands before it', (harm) => `${'true; '.repeat(60)}${harm}`),
    hiding('five thousand commands before it', (harm) => `${'true;'.repeat(5_000)}${harm}`),
    hiding('a subshell', (harm) => `(${harm})`),
    hiding('a group', (harm) => `{ ${harm}; }`),
    hiding('a substitution', (harm) => `echo $(${harm})`),
    hiding('backticks', (harm) => `echo \`${harm}\``),
    hiding('another shell', (harm) => `sh -c "${harm}"`),
    hiding('a command that runs commands', (harm) => `env ${harm}`),
    hiding('a line break', (harm) => `true\n${harm}`),
    hiding('a redirection before it', (harm) => `>/dev/null ${harm}`),
    hiding('a path to the program', (harm) => `/bin/${harm}`),
    hiding('quotes in its name', (harm) => `r''m${harm.slice(2)}`),
    hiding('a name in another alphabet', (harm) => `$'\\x72m'${harm.slice(2)}`),
    hiding('a line that goes on', (harm) => `r\\\nm${harm.slice(2)}`),
    hiding('a variable', (harm) => `x=rm; $x${harm.slice(2)}`),
    hiding('a substitution for its name', (harm) => `$(echo rm)${harm.slice(2)}`),
    hiding('braces', (harm) => `{rm,-f}${harm.slice(5)}`),
    hiding('words that it reads', (harm) => `echo ${harm.slice(6)} | xargs /bin/r?`),
    hiding('text that is decoded', (harm) => `echo ${Buffer.from(harm).toString('base64')} | base64 -d | sh`),
    hiding('a condition', (harm) => `if true; then ${harm}; fi`),
    ...['output_file', 'filename', 'source', 'destination', 'target', 'to', 'newPath'].map((field) =>
      elsewhere(field, 'rule'),
    ),
    ...['to', 'where', 'name', 'uri'].map((field) => elsewhere(field, 'roots')),
  ],
}
