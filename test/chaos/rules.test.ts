// The strict server: every published rule that it holds clients to, broken once and kept once.
import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import type {
  LanguageModelV3,
  LanguageModelV3CallOptions,
  LanguageModelV3Content,
  LanguageModelV3Message,
  LanguageModelV3Prompt,
} from '@ai-sdk/provider'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  type RuleRequest,
  type ChaosRequest,
  type ChaosModelReply,
  type Dialect,
  providerRules,
} from '../../src/testing/index.ts'
import { ruleCases } from './rules-cases.ts'
import { chaosFor, DIALECTS, json, post } from './wire.ts'
import { runs } from '../runs.ts'

type Fields = RuleRequest['body']
const KEYS =
  'messages input tools role content type text id tool_calls function name arguments parameters strict properties thinking ' +
  'tool_choice response_format format json_schema schema source system include tool_use_id call_id cache_control anyOf'
const WORDS =
  'user assistant tool system text tool_use tool_result thinking function_call function_call_output reasoning ' +
  'item_reference function json_schema json_object enabled object'

const first: ChaosModelReply = { reasoning: 'hm', text: 'so', calls: [{ tool: 'look', args: {} }] }
const script = (_request: ChaosRequest, n: number): ChaosModelReply => (n === 0 ? first : { text: 'fine' })

const ERROR = { type: 'invalid_request_error', message: expect.any(String) as string }
/** Each provider's own shape of an error. */
const SHAPES: Readonly<Record<Dialect, object>> = {
  messages: { type: 'error', error: ERROR, request_id: expect.any(String) as string },
  responses: { error: ERROR },
  chat: { error: ERROR },
}

describe('the rules', () => {
  it('B-CHAOS-15: are numbered within their dialect, say what they ask and where that is published', () => {
    for (const dialect of DIALECTS) {
      const rules = providerRules.filter((rule) => rule.dialect === dialect)
      expect(rules.map(({ id }) => id)).toEqual(rules.map((_, at) => `${dialect}-${at + 1}`))
      expect(rules.length).toBeGreaterThanOrEqual(9)
      expect(ruleCases[dialect]).toHaveLength(rules.length)
    }
    expect(providerRules.length).toBeGreaterThanOrEqual(27)
    for (const { rule, source } of providerRules) {
      expect(rule).toMatch(/^\S.*\.$/)
      expect(new URL(source).protocol).toBe('https:')
    }
  })

  const table = providerRules.map((rule, at) => {
    const within = at - providerRules.findIndex(({ dialect }) => dialect === rule.dialect)
    return [rule.id, rule.rule, rule.dialect, ruleCases[rule.dialect][within] ?? { wrong: {}, right: {} }] as const
  })

  it.each(table)('B-CHAOS-14: %s: %s', async (id, _rule, dialect, each) => {
    const chaos = await chaosFor(script, { strict: true })
    expect((await post(chaos, dialect, each.before)).status).toBe(200)
    const refused = await post(chaos, dialect, each.wrong, { headers: each.wrongHeaders ?? {} })
    expect([refused.status, chaos.requests.at(-1)?.refused]).toEqual([each.status ?? 400, id])
    expect(await json(refused)).toMatchObject(SHAPES[dialect])
    const kept = await post(chaos, dialect, each.right)
    expect([chaos.requests.at(-1)?.refused, kept.status]).toEqual([undefined, 200])
  })

  it('B-CHAOS-14: a node of a strict schema that says nothing, or something beside a reference, is refused', async () => {
    const chaos = await chaosFor(script, { strict: true })
    const strictly = async (a: object): Promise<number> => {
      const rest = { required: ['a'], additionalProperties: false, $defs: { A: { type: 'string' } } }
      const parameters = { type: 'object', properties: { a }, ...rest }
      const tools = [{ type: 'function', name: 'look', strict: true, parameters }]
      return (await post(chaos, 'responses', { tools })).status
    }
    for (const a of [{}, { description: 'any' }, { type: 'array' }, { $ref: '#/$defs/A', description: 'any' }])
      expect(await strictly(a)).toBe(400)
    for (const a of [{ $ref: '#/$defs/A' }, { enum: ['b'] }, { type: 'array', items: { type: 'string' } }])
      expect(await strictly(a)).toBe(200)
  })

  it.each(DIALECTS)('B-CHAOS-16: of %s hold only on a strict server', async (dialect) => {
    const chaos = await chaosFor(script)
    for (const { wrong, wrongHeaders = {} } of ruleCases[dialect]) {
      expect((await post(chaos, dialect, wrong, { headers: wrongHeaders })).status).toBe(200)
    }
  })

  it('B-CHAOS-16: a request that is refused takes no reply of the script', async () => {
    const chaos = await chaosFor(['only'], { strict: true })
    expect((await post(chaos, 'chat', { messages: [] })).status).toBe(400)
    expect(await (await post(chaos, 'chat')).text()).toContain('only')
    expect(chaos.requests.map(({ refused }) => refused)).toEqual(['chat-1', undefined])
  })
})

type Client = {
  readonly model: (url: string) => LanguageModelV3
  readonly options?: NonNullable<LanguageModelV3CallOptions['providerOptions']>
}

const CLIENTS: Readonly<Record<string, Client>> = {
  messages: {
    model: (url) => createAnthropic({ baseURL: `${url}/v1`, apiKey: 'k' })('claude-sonnet-4-5'),
    options: { anthropic: { thinking: { type: 'enabled', budgetTokens: 1_024 } } },
  },
  'responses, stored': { model: (url) => createOpenAI({ baseURL: `${url}/v1`, apiKey: 'k' }).responses('gpt-5') },
  'responses, not stored': {
    model: (url) => createOpenAI({ baseURL: `${url}/v1`, apiKey: 'k' }).responses('gpt-5'),
    options: { openai: { store: false, include: ['reasoning.encrypted_content'] } },
  },
  chat: { model: (url) => createOpenAICompatible({ name: 'chaos', baseURL: `${url}/v1` })('some-model') },
}

/** What a model said, as it is told that it said it. */
function saidBy(content: readonly LanguageModelV3Content[]): LanguageModelV3Message {
  const parts: Extract<LanguageModelV3Message, { role: 'assistant' }>['content'] = []
  for (const part of content) {
    const mark = 'providerMetadata' in part && part.providerMetadata ? { providerOptions: part.providerMetadata } : {}
    if (part.type === 'text' || part.type === 'reasoning') parts.push({ type: part.type, text: part.text, ...mark })
    if (part.type !== 'tool-call') continue
    const { type, toolCallId, toolName, input } = part
    parts.push({ type, toolCallId, toolName, input: JSON.parse(input) as unknown, ...mark })
  }
  return { role: 'assistant', content: parts }
}

function resultsFor(content: readonly LanguageModelV3Content[]): LanguageModelV3Message {
  const parts: Extract<LanguageModelV3Message, { role: 'tool' }>['content'] = []
  for (const part of content) {
    if (part.type !== 'tool-call') continue
    const { toolCallId, toolName } = part
    parts.push({ type: 'tool-result', toolCallId, toolName, output: { type: 'text', value: 'seen' } })
  }
  return { role: 'tool', content: parts }
}

describe('a conversation', () => {
  it.each(Object.entries(CLIENTS))('B-CHAOS-17: by the AI SDK (%s) goes on with what it got', async (_name, client) => {
    const chaos = await chaosFor([first, first, { text: 'done' }], { strict: true })
    const model = client.model(chaos.url)
    const tools: LanguageModelV3CallOptions['tools'] = [
      { type: 'function', name: 'look', inputSchema: { type: 'object', properties: {} } },
    ]
    const options = client.options === undefined ? { tools } : { tools, providerOptions: client.options }
    const prompt: LanguageModelV3Prompt = [{ role: 'user', content: [{ type: 'text', text: 'look' }] }]
    for (let turn = 0; turn < 2; turn++) {
      const { content } = await model.doGenerate({ prompt, ...options })
      prompt.push(saidBy(content), resultsFor(content))
    }
    const last = await model.doGenerate({ prompt, ...options })
    expect(last.content).toMatchObject([{ type: 'text', text: 'done' }])
    expect(chaos.requests.map(({ refused }) => refused)).toEqual([undefined, undefined, undefined])
  })
})

describe('a body', () => {
  const odd = fc.anything({
    maxDepth: 4,
    key: fc.constantFrom(...KEYS.split(' ')),
    values: [fc.constantFrom('', ...WORDS.split(' ')), fc.integer()],
  })

  it('B-CHAOS-18: however odd, is judged and never breaks a rule', () => {
    const issued = { signatures: new Map(), items: new Map(), responses: new Map() }
    fc.assert(
      fc.property(odd, (value) => {
        const body = (typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {}) as Fields
        for (const { check } of providerRules) check({ headers: {}, body, issued })
      }),
      { numRuns: runs(2_000), seed: 11 },
    )
  })
})
