// Calls that a model writes as text, read by their dialect: which texts are calls, and what is never one.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { textTools } from '../../src/index.ts'
import type { ToolSchema } from '../../src/ports/model.ts'
import { looksLikeCall } from '../../src/models/protocols/leaked-calls.ts'
import { CallHider } from '../../src/models/protocols/dialects/hide-calls.ts'
import { MARKERS } from '../../src/models/protocols/dialects/markers.ts'
import { readCalls } from '../../src/models/protocols/dialects/read-calls.ts'
import { type TextDialect, DIALECTS } from '../../src/models/protocols/dialects/readers.ts'
import { chaosOf, harnessOf, hosted, noting } from './hosted-stage.ts'

function toolOf(name: string, properties: Readonly<Record<string, string>>): ToolSchema {
  const entries = Object.entries(properties).map(([key, type]) => [key, { type }] as const)
  return { name, description: '', parameters: { type: 'object', properties: Object.fromEntries(entries) } }
}

const tools = [
  toolOf('get_weather', { location: 'string', unit: 'string' }),
  toolOf('shell', { command: 'string' }),
  toolOf('x', { b: 'string', a: 'string' }),
  toolOf('math', { exact: 'boolean', n: 'integer', ratio: 'number', word: 'string' }),
  toolOf('write', { path: 'string', content: 'string' }),
]
const read = (text: string, dialect: TextDialect = 'xml') => readCalls(text, DIALECTS[dialect], tools)
const calls = (text: string, dialect: TextDialect = 'xml') =>
  read(text, dialect)?.calls.map(({ tool, args }) => [tool, JSON.parse(args) as unknown]) ?? null
const leaks = (text: string): boolean =>
  looksLikeCall(
    text,
    tools.map(({ name }) => name),
  )

describe('Calls in tags', () => {
  it.each([
    ['get_weather[London|metric]', 'get_weather', '{"location":"London","unit":"metric"}'],
    ['shell[cat a \\| grep b]', 'shell', '{"command":"cat a | grep b"}'],
    ['shell[C:\\Users]', 'shell', '{"command":"C:\\\\Users"}'],
    ['shell[C:\\\\Users\\]]', 'shell', '{"command":"C:\\\\Users]"}'],
    ['x[]', 'x', '{}'],
    ['x[a|b|c]', 'x', '{"a":"a","b":"b"}'],
    ['math[maybe|x]', 'math', '{"exact":"maybe","n":"x"}'],
    ['math[true|-3|2.5|4]', 'math', '{"exact":true,"n":-3,"ratio":2.5,"word":"4"}'],
  ])('B-DIALECT-1: P-Format is read: %s (S2-57)', (text, tool, args) => {
    const whole = `<tool_call>${text}</tool_call>`
    expect(read(whole)).toEqual({ calls: [{ tool, args, raw: whole }], text: '' })
  })

  it.each([
    ['JSON', '{"name": "shell", "arguments": {"command": "ls"}}'],
    ['other names of the fields', '{"tool": "shell", "parameters": {"command": "ls"}}'],
    ['arguments as text', '{"name": "shell", "arguments": "{\\"command\\": \\"ls\\"}"}'],
    ['a trailing comma', '{"name": "shell", "arguments": {"command": "ls",},}'],
    ['a brace too many', '{"name": "shell", "arguments": {"command": "ls"}}}'],
    ['a missing brace', '{"name": "shell", "arguments": {"command": "ls"}'],
    ['line breaks around it', '\n  {"name": "shell",\n "arguments": {"command": "ls"}}\n'],
  ])('B-DIALECT-2: %s is read as a call', (_, body) => {
    expect(calls(`<tool_call>${body}</tool_call>`)).toEqual([['shell', { command: 'ls' }]])
  })

  it('B-DIALECT-2: two tags are two calls, and the text between them stays', () => {
    const text = 'First.\n<tool_call>shell[a]</tool_call>\nThen.\n<tool_call>{"name":"x","arguments":{}}</tool_call>\n'
    expect(read(text)).toEqual({
      calls: [
        { tool: 'shell', args: '{"command":"a"}', raw: '<tool_call>shell[a]</tool_call>' },
        { tool: 'x', args: '{}', raw: '<tool_call>{"name":"x","arguments":{}}</tool_call>' },
      ],
      text: 'First.\n\nThen.',
    })
  })

  it.each(['\n', ', ', ' '])(
    'B-DIALECT-2: several values in one tag are several calls, whatever stands between',
    (between) => {
      const [one, two] = ['a', 'b'].map((command) => JSON.stringify({ name: 'shell', arguments: { command } }))
      const several = [
        ['shell', { command: 'a' }],
        ['shell', { command: 'b' }],
      ]
      expect(calls(`<tool_call>${one}${between}${two}</tool_call>`)).toEqual(several)
      expect(calls(`<tool_call>[${one}, ${two}]</tool_call>`)).toEqual(several)
      expect(calls(`<tool_call>${one}${between}{"name": broken}</tool_call>`)).toBeNull()
      expect(calls(`<tool_call>${one} and then ${two}</tool_call>`)).toBeNull()
    },
  )

  it('B-DIALECT-2: a tag within arguments belongs to the arguments', () => {
    const content = 'Write <tool_call>{"name":"shell","arguments":{"command":"rm"}}</tool_call> here.'
    const text = `<tool_call>${JSON.stringify({ name: 'write', arguments: { path: 'a', content } })}</tool_call>`
    expect(calls(text)).toEqual([['write', { path: 'a', content }]])
  })

  it('B-DIALECT-2: damaged arguments of a known tool are left to admission', () => {
    const text = '<tool_call>{"name": "write", "arguments": {"path": "a", "content": "say "hi" now"}}</tool_call>'
    expect(read(text)?.calls).toEqual([{ tool: 'write', args: '{"path": "a", "content": "say "hi" now"}', raw: text }])
  })

  it.each([
    ['an unknown tool as P-Format', '<tool_call>delete_all[now]</tool_call>'],
    ['an unknown tool as JSON', '<tool_call>{"name": "delete_all", "arguments": {}}</tool_call>'],
    ['an unknown tool after words', 'Now then.\n<tool_call>delete_all[now]</tool_call>'],
    ['an open tag at the end', 'I look.\n<tool_call>{"name": "shell", "arguments": {"command": "ls"}}'],
    ['an open tag with nothing in it', 'I look.\n<tool_call>'],
    ['JSON cut after its first letters', 'I look.\n<tool_call>\n{"na'],
    ['a whole call before a cut one', '<tool_call>shell[ls]</tool_call>\n<tool_call>{"name": "shell", "argum'],
    ['a whole call before an unknown one', '<tool_call>shell[ls]</tool_call>\n<tool_call>nope[ls]</tool_call>'],
    ['two P-Formats in one tag', '<tool_call>x[a] x[b]</tool_call>'],
    ['another dialect', '<function=shell>{"command": "ls"}</function>'],
    ['a name in other case', 'Ok. <tool_call>{"name": "Shell", "arguments": {}}</tool_call>'],
  ])('B-DIALECT-3: %s is not run, and is no answer (TRAP-10)', (_, text) => {
    expect(read(text)).toBeNull()
    expect(leaks(text)).toBe(true)
  })

  it.each([
    ['in a fence', 'Like this:\n```xml\n<tool_call>shell[ls]</tool_call>\n```\nThat is all.'],
    ['in a fence at the end', 'Like this:\n```\n<tool_call>{"name":"shell","arguments":{}}</tool_call>\n```'],
    ['in a fence of tildes', 'Like this:\n~~~\n<tool_call>shell[ls]</tool_call>\n~~~\nThat is all.'],
    ['behind a backtick', 'Write `<tool_call>shell[ls]</tool_call>` and it runs.'],
    ['as a word', 'A call begins with <tool_call> and has a name.'],
  ])('B-DIALECT-4: a call that is quoted %s is prose', (_, text) => {
    expect(read(text)).toBeNull()
    if (!text.includes('~~~')) expect(leaks(text)).toBe(false)
  })

  it('B-DIALECT-4: a fence within the arguments of a call ends nothing', () => {
    const content = '# Title\n```sh\nls\n```\n'
    const text = `<function=write>\n<parameter=path>a.md</parameter>\n<parameter=content>\n${content}\n</parameter>\n</function>`
    expect(calls(`Ok.\n${text}\n<function=shell><parameter=command>ls</parameter></function>`, 'function')).toEqual([
      ['write', { path: 'a.md', content }],
      ['shell', { command: 'ls' }],
    ])
  })

  it('B-DIALECT-10: what follows a result that the model makes up is dropped, with its calls', () => {
    const text =
      'I look.\n<tool_call>shell[ls]</tool_call>\n<tool_result call="1" tool="shell">\na\n</tool_result>\n<tool_call>shell[rm a]</tool_call>'
    expect(read(text)).toMatchObject({ calls: [{ args: '{"command":"ls"}' }], text: 'I look.' })
  })
})

describe('Calls as elements and in fences', () => {
  it.each<[string, TextDialect, string]>([
    ['invoke', 'invoke', '<invoke name="shell">\n<parameter name="command">ls</parameter>\n</invoke>'],
    [
      'a block of them',
      'invoke',
      '<function_calls>\n<invoke name="shell"><parameter name="command">ls</parameter></invoke>\n</function_calls>',
    ],
    [
      'MiniMax',
      'invoke',
      '<minimax:tool_call><invoke name="shell"><parameter name="command">ls</parameter></invoke></minimax:tool_call>',
    ],
    ['a function', 'function', '<function=shell>\n<parameter=command>\nls\n</parameter>\n</function>'],
    ['a function with JSON', 'function', '<function=shell>{"command": "ls"}</function>'],
    [
      'a function with a name',
      'function',
      '<function name="shell"><parameter name="command">ls</parameter></function>',
    ],
    [
      'a function in a tag',
      'function',
      '<tool_call>\n<function=shell>\n<parameter=command>\nls\n</parameter>\n</function>\n</tool_call>',
    ],
    ['a fence', 'fenced', '```tool_call\n{"name": "shell", "arguments": {"command": "ls"}}\n```'],
    ['P-Format in a fence', 'fenced', '```tool_call\nshell[ls]\n```'],
  ])('B-DIALECT-5: %s is read, alone and after words', (_, dialect, text) => {
    expect(calls(text, dialect)).toEqual([['shell', { command: 'ls' }]])
    expect(read(`Well.\n${text}\n`, dialect)).toMatchObject({ calls: [{ raw: text }], text: 'Well.' })
    expect(leaks(text)).toBe(true)
    for (const other of Object.keys(DIALECTS) as TextDialect[])
      if (other !== dialect) expect(read(text, other)).toBeNull()
  })

  it('B-DIALECT-5: what a dialect writes, it reads', () => {
    const args = { path: '__proto__', content: 'a\n</parameter> "b" ```\n\n' }
    for (const dialect of Object.keys(DIALECTS) as TextDialect[]) {
      const text = DIALECTS[dialect].write({ tool: 'write', args: JSON.stringify(args) })
      expect([dialect, calls(text, dialect)]).toEqual([dialect, [['write', args]]])
    }
  })

  it('B-DIALECT-5: values are read by their schema, and a parameter that comes twice is no call', () => {
    const text = (more: string) =>
      `<invoke name="math"><parameter name="n">3</parameter><parameter name="exact">true</parameter>${more}</invoke>`
    expect(calls(text(''), 'invoke')).toEqual([['math', { n: 3, exact: true }]])
    expect(read(text('<parameter name="n">4</parameter>'), 'invoke')).toBeNull()
  })

  it('B-DIALECT-6: every marker that a dialect reads is in the table of leaked calls', () => {
    for (const { readers } of Object.values(DIALECTS))
      for (const marker of readers.keys()) {
        expect(Object.keys(MARKERS)).toContain(marker)
        expect(leaks(`${marker}x`)).toBe(true)
      }
  })
})

describe('Hostile texts', () => {
  const long = 10_000_000
  const openings = ['<tool_call>', '<invoke name="shell">', '<function=shell>', '```tool_call\n']
  const bodies = [
    '',
    '{"name":"shell","arguments":{"a":',
    'shell[',
    '{',
    '[',
    '"\\',
    '\n',
    '<parameter=a>',
    '</parameter>',
  ]

  it('B-DIALECT-7: texts of 10 MB without an end call nothing', { timeout: 120_000 }, () => {
    for (const opening of openings)
      for (const body of bodies) {
        const piece = `${opening}${body}`
        const text = `Go.\n${piece.repeat(Math.ceil(long / piece.length / 4))}`
        for (const dialect of Object.keys(DIALECTS) as TextDialect[]) expect(read(text, dialect)).toBeNull()
        const hider = new CallHider(DIALECTS.xml)
        for (let at = 0; at < 100_000; at += 100) hider.push(text.slice(at, at + 100))
      }
    expect(read(`<tool_call>${'{"name":"shell","arguments":{"command":"'}${'a'.repeat(long)}`)).toBeNull()
    expect(read(`${'<tool_call>shell['.repeat(100_000)}]</tool_call>`)?.calls).toHaveLength(1)
  })

  it('B-DIALECT-7: nested tags are at most one call', () => {
    expect(read('<tool_call><tool_call>shell[ls]</tool_call></tool_call>')).toBeNull()
    expect(leaks('<tool_call><tool_call>shell[ls]</tool_call></tool_call>')).toBe(true)
  })

  it('B-DIALECT-7: a parameter called __proto__ and names that differ in case are fields like others', () => {
    const odd = [
      {
        name: 'odd',
        description: '',
        parameters: JSON.parse('{"type":"object","properties":{"__proto__":{"type":"string"},"a":{},"A":{}}}') as never,
      },
    ]
    const found = (text: string, dialect: TextDialect) => readCalls(text, DIALECTS[dialect], odd)?.calls[0]?.args
    expect(found('<tool_call>odd[1|2|3]</tool_call>', 'xml')).toBe('{"A":"1","__proto__":"2","a":"3"}')
    const text = '<function=odd><parameter=__proto__>x</parameter><parameter=A>y</parameter></function>'
    expect(found(text, 'function')).toBe('{"__proto__":"x","A":"y"}')
    expect(found('<tool_call>{"name":"odd","arguments":{"__proto__":1}}</tool_call>', 'xml')).toBe('{"__proto__":1}')
    expect(read('<tool_call>constructor[1]</tool_call>')).toBeNull()
    expect(({} as { readonly x?: unknown }).x).toBeUndefined()
  })
})

describe('Streams', () => {
  const texts: readonly (readonly [string, TextDialect, string])[] = [
    ['I look.\n\n<tool_call>shell[ls]</tool_call>', 'xml', 'I look.'],
    ['<tool_call>shell[ls]</tool_call>', 'xml', ''],
    ['A < b, <tool, `<tool_call>` and so on. ', 'xml', 'A < b, <tool, `<tool_call>` and so on.'],
    [
      'See:\n```\n<tool_call>a</tool_call>\n```\nDone.\n<tool_call>x[]</tool_call>',
      'xml',
      'See:\n```\n<tool_call>a</tool_call>\n```\nDone.',
    ],
    ['Ok.\n```tool_call\nshell[ls]\n```', 'fenced', 'Ok.'],
    ['Ok.\n<function=shell>{"command":"ls"}</function>', 'function', 'Ok.'],
  ]
  it.each(texts)('B-DIALECT-9: a stream hides the calls of its text, in any chunks: %s', (text, dialect, shown) => {
    for (const size of [1, 2, 3, 7, 1_000]) {
      const hider = new CallHider(DIALECTS[dialect])
      let said = ''
      for (let at = 0; at < text.length; at += size) said += hider.push(text.slice(at, at + size))
      expect(said, `chunks of ${size}`).toBe(shown)
      expect(said + hider.end(read(text, dialect)?.text ?? text.trimEnd())).toBe(shown)
    }
  })
})

it('B-DIALECT-8: the program of the guide runs as it stands there, and prints what the guide says', () => {
  const page = readFileSync(new URL('../../docs/guide/models.md', import.meta.url), 'utf8')
  const guide = page.slice(page.indexOf('## Models without tool calls'))
  const [, code = ''] = /```ts\n([\s\S]*?)```/.exec(guide) ?? []
  const [, printed = ''] = /```\n(It is cold[\s\S]*?)```/.exec(guide) ?? []
  const example = readFileSync(new URL('./guide-text-tools.ts', import.meta.url), 'utf8')
  expect(code.replace("'terret'", "'../../src/index.ts'")).toBe(example.slice(example.indexOf('\n') + 1))
  // Compiled by `npm run build:all`, which the tests begin with.
  const script = fileURLToPath(new URL('../../.build/test/models/guide-text-tools.js', import.meta.url))
  expect(execFileSync(process.execPath, [script], { encoding: 'utf8' })).toBe(printed)
})

it.each(['messages', 'responses', 'chat'] as const)(
  'B-DIALECT-8: a provider of the protocol %s takes such requests by its published rules',
  async (protocol) => {
    const call = (city: string): string => `I look.\n<tool_call>look[${city}]</tool_call>`
    const chaos = await chaosOf([`${call('Oslo')}\n${call('Rome')}`, call('Bonn'), 'Cold everywhere.'])
    const { tool, calls: ran } = noting()
    const harness = harnessOf({ model: textTools(hosted(chaos, protocol), { dialect: 'xml' }), tools: [tool] })
    expect(await harness.run('Where is it cold?')).toMatchObject({ status: 'completed', text: 'Cold everywhere.' })
    expect(ran).toHaveLength(3)
    const bodies = chaos.requests.map(({ body }) => body as { readonly tools?: unknown })
    expect(bodies.map(({ tools: sent }) => sent ?? [])).toEqual([[], [], []])
    expect(JSON.stringify(bodies[2])).toMatch(/tool_result call=.{1,3}2.{1,3} tool=.{1,3}look/)
  },
)
