// Calls that a model writes as text, in texts of any kind: only tools of the run are called, what is read stands in the text and
// outside of fences, what a dialect writes it reads, and a stream shows the same in whatever chunks it comes.
import type { ToolSchema } from '../../src/ports/model.ts'
import { looksLikeCall } from '../../src/models/protocols/leaked-calls.ts'
import { CallHider } from '../../src/models/protocols/dialects/hide-calls.ts'
import { type CallsOfText, readCalls } from '../../src/models/protocols/dialects/read-calls.ts'
import { type TextDialect, DIALECTS, type DialectRules } from '../../src/models/protocols/dialects/readers.ts'
import { drawn, type Tape } from './tape.ts'
import { hold, target } from './target.ts'

type Case = {
  readonly dialect: TextDialect
  readonly text: string
  readonly size: number
  readonly args: Readonly<Record<string, string>>
}
type Subject = {
  readonly read: (text: string, rules: DialectRules) => CallsOfText | null
  readonly hide: (text: string, rules: DialectRules, size: number) => string
}

const TOOLS: readonly ToolSchema[] = ['read', 'x', '__proto__'].map((name) => ({
  name,
  description: '',
  parameters: { type: 'object', properties: { path: { type: 'string' }, n: { type: 'integer' } } },
}))
const NAMES = TOOLS.map(({ name }) => name)

const PIECES = [
  ...Object.values(DIALECTS).flatMap(({ readers }) => [...readers.keys()]),
  '</tool_call>',
  '</toolcall>',
  '</invoke>',
  '</function>',
  '</function_calls>',
  '<parameter=path>',
  '<parameter name="path">',
  '</parameter>',
  '"read">',
  'read>',
  'read[',
  'nope[',
  'a|b',
  '\\|',
  ']',
  '{"name": "read", "arguments": {"path": "a"}}',
  '{"name": "nope", "arguments": {}}',
  '{"name":"read","arguments":',
  '"',
  '{',
  '}',
  '```',
  '```\n',
  '~~~\n',
  '`',
  '\n',
  '\n\n',
  ' ',
  'words',
  '<tool_result',
  '😀',
]

function draw(tape: Tape): Case {
  const dialect = tape.pick(Object.keys(DIALECTS) as TextDialect[])
  const value = (): string => tape.list(4, () => tape.pick(['a', '\n', ' ', '<', '`', '"', '\\', '|', '😀'])).join('')
  const args = { path: value(), n: tape.pick(['1', 'a', '']) }
  const call = (tool: string): string => DIALECTS[dialect].write({ tool, args: JSON.stringify(args) })
  const text = tape.list(24, () => (tape.chance(5) ? call(tape.pick(['read', 'nope'])) : tape.pick(PIECES))).join('')
  return { dialect, text, size: tape.pick([1, 2, 3, 5, 11]), args }
}

const real: Subject = {
  read: (text, rules) => readCalls(text, rules, TOOLS),
  hide: (text, rules, size) => {
    const hider = new CallHider(rules)
    let shown = ''
    for (let at = 0; at < text.length; at += size) shown += hider.push(text.slice(at, at + size))
    return shown
  },
}

function check({ read, hide }: Subject, { dialect, text, size, args }: Case): void {
  const rules = DIALECTS[dialect]
  const found = read(text, rules)
  let at = 0
  for (const { tool, raw } of found?.calls ?? []) {
    hold(NAMES.includes(tool), () => `${tool} is called`)
    const next = text.indexOf(raw, at)
    hold(next >= 0, () => `what was read is not in the text: ${raw}`)
    hold(raw === '' || [...rules.readers.keys()].some((marker) => raw.startsWith(marker)), () => `no marker: ${raw}`)
    at = next + raw.length
  }
  hold(found === null || !looksLikeCall(found.text, NAMES), () => 'a call is left in the text')
  const fenced = read(`Like this:\n~~~~\n${text.replaceAll('~', '')}\n~~~~\nThat is all.`, rules)
  hold(fenced === null, () => 'a call in a fence is read')
  const shown = hide(text, rules, size)
  hold(text.startsWith(shown), () => 'a stream shows another text')
  const once = hide(text, rules, text.length + 1)
  hold(shown === once, () => `a stream shows "${shown}" in chunks, and "${once}" at once`)
  hold(read(shown, rules) === null, () => 'a stream shows a call')
  const written = read(rules.write({ tool: 'read', args: JSON.stringify(args) }), rules)?.calls[0]?.args ?? '{}'
  const { path } = JSON.parse(written) as { readonly path?: string }
  hold(path === args['path'], () => `written ${JSON.stringify(args['path'])}, read ${JSON.stringify(path)}`)
}

export const dialects = target<Subject, Case>({
  name: 'dialects',
  real,
  cases: drawn(draw, 256),
  planted: {
    'a call in a fence is read': {
      ...real,
      read: (text, rules) => real.read(text.replaceAll('~', ''), rules),
    },
    'a tool that is not there is called': {
      ...real,
      read: (text, rules) => readCalls(text, rules, [...TOOLS, { name: 'nope', description: '', parameters: {} }]),
    },
    'each chunk of a stream is looked at alone': {
      ...real,
      hide: (text, rules, size) => {
        let shown = ''
        for (let at = 0; at < text.length; at += size) shown += real.hide(text.slice(at, at + size), rules, size)
        return shown
      },
    },
  },
  check,
})
