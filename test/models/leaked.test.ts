// Texts that are calls which a host failed to parse, and texts that are not.
import type { LanguageModelV3StreamPart } from '@ai-sdk/provider'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { Harness, scripted } from '../../src/index.ts'
import { fromAiSdk } from '../../src/models/aisdk/aisdk.ts'
import { looksLikeCall } from '../../src/models/protocols/leaked-calls.ts'
import { finish, mock } from './aisdk-stage.ts'
import { chaosOf, harnessOf, hosted, noting } from './hosted-stage.ts'

const tools = ['read', 'web_search', 'wind']
const looks = (text: string): boolean => looksLikeCall(text, tools)

describe('Leaked calls', () => {
  it.each([
    ['Hermes and Qwen', '<tool_call>\n{"name": "read", "arguments": {"path": "a"}}\n</tool_call>'],
    ['after words', 'I will look it up.\n\n<tool_call>\n{"name": "web_search", "arguments": {"q": "x"}}\n</tool_call>'],
    ['on the same line', 'Sure! <tool_call>{"arguments": {"q": "x"}, "name": "web_search"}</tool_call>'],
    ['cut short', 'Now reading.\n<tool_call>\n{"name": "read", "argum'],
    ['Llama', 'Let me see. <function=read>{"path": "a"}</function>'],
    [
      'Qwen Coder',
      'Reading.\n<tool_call>\n<function=read>\n<parameter=path>\na\n</parameter>\n</function>\n</tool_call>',
    ],
    ['GLM', 'Reading.\n<tool_call>read\n<arg_key>path</arg_key>\n<arg_value>a</arg_value>\n</tool_call>'],
    ['Mistral', 'Ok.[TOOL_CALLS]read{"path": "a"}'],
    ['Mistral, a list', '[TOOL_CALLS] [{"name": "read", "arguments": {"path": "a"}}]'],
    ['Llama with Python', '<|python_tag|>{"name": "read", "parameters": {"path": "a"}}'],
    [
      'Kimi',
      'Hm.<|tool_calls_section_begin|><|tool_call_begin|>functions.read:0<|tool_call_argument_begin|>{"path":"a"}',
    ],
    [
      'DeepSeek',
      'Hm.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>read\n```json\n{"path":"a"}\n```',
    ],
    ['gpt-oss', 'We look.<|channel|>commentary to=functions.read <|constrain|>json<|message|>{"path":"a"}'],
    ['Gemma', 'Ok. <start_function_call>call:read{path:<escape>a<escape>}<end_function_call>'],
    ['invoke', 'Ok.\n<function_calls>\n<invoke name="read">\n<parameter name="path">a</parameter>\n</invoke>'],
    ['function with a name', 'Ok. <function name="read"><parameter name="path">a</parameter></function>'],
    ['toolcall', 'Ok.\n<toolcall>{"name": "read", "arguments": {"path": "a"}}</toolcall>'],
    ['MiniMax', 'Ok.\n<minimax:tool_call>\n<invoke name="read">\n<parameter name="path">a</parameter>\n</invoke>'],
    ['a tool that is not there', '<tool_call>\n{"name": "made_up", "arguments": {}}\n</tool_call>'],
    ['after a thought', '<think>\nI need it.\n</think>\n<tool_call>\n{"name": "read", "arguments": {}}\n</tool_call>'],
  ])('B-CHAT-29: a call behind its mark is seen: %s', (_, text) => {
    expect(looks(text)).toBe(true)
  })

  it.each([
    ['an object', '{"name": "read", "arguments": {"path": "a"}}'],
    ['other keys', '{"tool": "read", "args": {"path": "a"}}'],
    ['parameters first', '{"parameters": {"path": "a"}, "name": "read"}'],
    ['a list', '[{"name": "read", "arguments": {}}, {"name": "wind", "arguments": {}}]'],
    ['the wire form', '{"tool_calls": [{"type": "function", "function": {"name": "read", "arguments": "{}"}}]}'],
    ['in parallel', '{"tool_uses": [{"recipient_name": "functions.read", "parameters": {"path": "a"}}]}'],
    ['several', '{"name": "read", "parameters": {"path": "a"}}; {"name": "wind", "parameters": {}}'],
    ['after words', 'I will read it.\n\n{\n  "name": "read",\n  "arguments": {"path": "a}"}\n}'],
    ['in a fence', '```json\n{"name": "read", "arguments": {"path": "a"}}\n```'],
    ['in a fence after words', 'I call read:\n\n```json\n{"name": "read", "arguments": {"path": "a"}}\n```\n'],
    ['in a fence that never ends', '```\n{"name": "read", "arguments": {"path": "a"}}'],
    ['cut short', '{"name": "read", "arguments": {"path": "a'],
    ['after a brace that never closes', '{ so it goes\n{"name": "read", "arguments": {}}'],
  ])('B-CHAT-30: bare JSON that calls an offered tool is seen: %s', (_, text) => {
    expect(looks(text)).toBe(true)
  })

  it.each([
    ['nothing', ''],
    ['prose', 'I used read and web_search. The wind is calm.'],
    ['JSON that is an answer', '{"name": "Ada", "arguments": "for and against"}'],
    ['JSON that only names a tool', '{"name": "read", "count": 3}'],
    ['a tool that is not offered', '{"name": "delete_all", "arguments": {}}'],
    ['a mark in words', 'Qwen writes <tool_call> tags to read files, and Mistral has [TOOL_CALLS] before a list.'],
    ['a tag of a schema', 'In the file, <function name="main"> declares it, and <toolcall> has no meaning.'],
    ['a mark in backticks', 'It begins with `<tool_call>{"name": "read"}` and so on.'],
    [
      'an example in a fence',
      'Like this:\n\n```\n<tool_call>{"name": "read", "arguments": {}}</tool_call>\n```\n\nThat is all.',
    ],
    ['JSON in a fence before more words', 'Like this:\n```json\n{"name": "read", "arguments": {}}\n```\nThat is all.'],
    ['JSON inside a line', 'The body is {"name": "read", "arguments": {}} as you see.'],
    ['code', 'function read(path) {\n  return fs.readFileSync(path)\n}\n[1, 2]\n{ "a": 1 }'],
  ])('B-CHAT-31: what is not a call is left alone: %s', (_, text) => {
    expect(looks(text)).toBe(false)
  })

  it('B-CHAT-31: long and hostile texts are looked at once', () => {
    const long = 400_000
    for (const piece of [
      '{',
      '[',
      '{"',
      '<tool_call>',
      '```\n',
      '{"name":"x"}\n',
      '\n{',
      ' ',
      'a <function=b ',
      '"\\',
    ]) {
      const text = `a ${piece.repeat(Math.ceil(long / piece.length))}`
      expect(looksLikeCall(text, ['read'])).toBe(false)
    }
  })
})

describe('Leaked calls in a run', () => {
  it('B-OUTPUT-26: a call that came as text is no answer: the model is told so, and the run fails when it goes on like that (TRAP-10)', async () => {
    const leak = '<tool_call>\n{"name": "look", "arguments": {"city": "Oslo"}}\n</tool_call>'
    for (const [script, end] of [
      [[leak, 'It is cold.'], { status: 'completed', text: 'It is cold.', usage: { modelRequests: 2, toolCalls: 0 } }],
      [[leak, leak], { status: 'failed', stopReason: 'output_validation_failed' }],
    ] as const) {
      const { tool, calls } = noting()
      const harness = new Harness({ model: scripted([...script]), tools: [tool] })
      expect(await harness.run('How is Oslo?')).toMatchObject(end)
      expect(calls).toEqual([])
      await harness.close()
    }
  })

  it.each([
    '<function name="ok">{}</function>',
    '<toolcall>ok</toolcall>',
    '<minimax:tool_call>\n<invoke name="ok">\n</invoke>\n</minimax:tool_call>',
  ])(
    'B-OUTPUT-26: a whole reply of %s is no answer, from a stream and from a model of the AI SDK too',
    async (leak) => {
      const parts: LanguageModelV3StreamPart[] = [
        { type: 'text-start', id: 't' },
        ...leak.split('').map((delta) => ({ type: 'text-delta', id: 't', delta }) as const),
        { type: 'text-end', id: 't' },
        finish('stop'),
      ]
      for (const model of [scripted([leak, leak]), fromAiSdk(mock(parts, parts))]) {
        const { tool, calls } = noting()
        const harness = new Harness({ model, tools: [tool] })
        const stream = harness.stream('Go.')
        for await (const event of stream) void event
        expect(await stream.result).toMatchObject({ status: 'failed', stopReason: 'output_validation_failed' })
        expect(calls).toEqual([])
        await harness.close()
      }
    },
  )

  it.each(['prompted', 'native'] as const)(
    'B-OUTPUT-26: it is no %s answer either, although it fits the schema of one',
    async (mode) => {
      const { tool, calls } = noting()
      const named = z.object({ name: z.string() })
      const leak = '<tool_call>{"name": "look", "arguments": {"city": "Oslo"}}</tool_call>'
      const chaos = await chaosOf([leak, '{"name":"Oslo"}'])
      const harness = harnessOf({
        model: hosted(chaos, 'responses'),
        tools: [tool],
        output: { schema: named, mode },
      })
      expect(await harness.run('Which?')).toMatchObject({ output: { name: 'Oslo' }, usage: { modelRequests: 2 } })
      expect(calls).toEqual([])
    },
  )
})
