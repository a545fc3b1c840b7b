// The same streams as the AI SDK reads them: its provider packages, given the recorded bytes in place of an answer. It says
// what they make of a stream, and not whether that is right.
import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import type { LanguageModelV3, LanguageModelV3StreamPart, SharedV3ProviderMetadata } from '@ai-sdk/provider'
import { createOpenRouter } from '@openrouter/ai-sdk-provider'
import type { Json } from '../../src/kernel/content.ts'
import { argsIn, failedWith, type Said, usageWith } from './oracle-said.ts'
import type { Recording } from './oracle-streams.ts'

export async function sdkReading(recording: Recording): Promise<Said> {
  const heard = new Heard(Buffer.from(recording.bytes).toString())
  try {
    const prompt = [{ role: 'user' as const, content: [{ type: 'text' as const, text: 'hello' }] }]
    const { stream } = await readerOf(recording).doStream({ prompt })
    for await (const part of stream) heard.take(part)
  } catch {
    return failedWith(heard.text())
  }
  return heard.said()
}

/** Chat is spoken by many: OpenAI's and OpenRouter's own packages for theirs, the common one for all others. */
function readerOf({ name, protocol, bytes }: Recording): LanguageModelV3 {
  const headers = { 'content-type': 'text/event-stream' }
  const send = () => Promise.resolve(new Response(Buffer.from(bytes), { headers }))
  const own = { apiKey: 'none', fetch: send }
  if (protocol === 'messages') return createAnthropic(own)('claude-sonnet-4-5')
  if (protocol === 'responses') return createOpenAI(own).responses('gpt-5')
  if (name.startsWith('chat/openrouter')) return createOpenRouter(own).chat('m')
  const isOpenAi = /^: source: \S*platform\.openai\.com/.test(Buffer.from(bytes.subarray(0, 80)).toString())
  if (isOpenAi || /\/(openai|azure)-/.test(name)) return createOpenAI(own).chat('gpt-4.1')
  return createOpenAICompatible({ name: 'host', baseURL: 'https://host.example', fetch: send })('m')
}

type Thought = { type: 'reasoning'; of: string; sections: Map<string, string>; sealed: Json }
type Finish = Extract<LanguageModelV3StreamPart, { type: 'finish' }>

const FINISHES = {
  stop: 'stop',
  length: 'length',
  'tool-calls': 'calls',
  'content-filter': 'refusal',
  other: 'other',
  error: 'failed',
} as const

class Heard {
  readonly #parts: ({ type: 'text'; id: string; text: string } | Thought)[] = []
  readonly #calls: Said['calls'][number][] = []
  readonly #stream: string
  #finish: Finish | null = null

  constructor(stream: string) {
    this.#stream = stream
  }

  take(part: LanguageModelV3StreamPart): void {
    switch (part.type) {
      case 'text-start':
        this.#parts.push({ type: 'text', id: part.id, text: '' })
        return
      case 'text-delta':
        this.#say(part.id, part.delta)
        return
      case 'reasoning-start':
      case 'reasoning-delta':
      case 'reasoning-end':
        this.#think(part)
        return
      case 'tool-call':
        // A tool that the provider executed itself is not a call of ours.
        if (part.providerExecuted) return
        this.#calls.push({
          // Where a host gives no id, this reader makes one up.
          id: this.#stream.includes(part.toolCallId) ? part.toolCallId : '',
          tool: part.toolName,
          args: argsIn(part.input),
          sealed: signatureOf(part.providerMetadata),
        })
        return
      case 'finish':
        this.#finish = part
        return
      default:
        return
    }
  }

  text(): string {
    return this.#parts.map((part) => (part.type === 'text' ? part.text : '')).join('')
  }

  said(): Said {
    const finish = this.#finish === null ? 'failed' : FINISHES[this.#finish.finishReason.unified]
    if (this.#finish === null || finish === 'failed') return failedWith(this.text())
    const parts = this.#parts.map((part): Said['parts'][number] => {
      if (part.type === 'text') return { type: 'text', text: part.text }
      return { type: 'reasoning', text: [...part.sections.values()].join('\n\n'), sealed: part.sealed }
    })
    return {
      parts: parts.filter((part) => part.text !== '' || (part.type === 'reasoning' && part.sealed !== null)),
      calls: this.#calls,
      finish,
      usage: usageIn(this.#finish),
    }
  }

  #say(id: string, text: string): void {
    const last = this.#parts.findLast((part) => part.type === 'text' && part.id === id)
    if (last?.type === 'text') last.text += text
    else this.#parts.push({ type: 'text', id, text })
  }

  /** The sections of one item of the Responses API are parts of their own there, and one here. */
  #think(part: Extract<LanguageModelV3StreamPart, { type: `reasoning-${string}` }>): void {
    const of = part.id.replace(/:\d+$/, '')
    const known = this.#parts.findLast((other): other is Thought => other.type === 'reasoning' && other.of === of)
    const thought = known ?? { type: 'reasoning', of, sections: new Map<string, string>(), sealed: null }
    if (!known) this.#parts.push(thought)
    const section = thought.sections.get(part.id) ?? ''
    thought.sections.set(part.id, section + ('delta' in part ? part.delta : ''))
    thought.sealed = sealedIn(part.providerMetadata) ?? thought.sealed
  }
}

function sealedIn(metadata: SharedV3ProviderMetadata | undefined): Json {
  const { anthropic = {}, openai = {}, openrouter = {} } = metadata ?? {}
  const own = anthropic['signature'] ?? anthropic['redactedData'] ?? openai['reasoningEncryptedContent']
  return (own ?? openrouter['reasoning_details'] ?? null) as Json
}

function signatureOf(metadata: SharedV3ProviderMetadata | undefined): Json {
  const signature = metadata?.['host']?.['thoughtSignature']
  return signature === undefined ? null : { google: { thought_signature: signature as Json } }
}

function usageIn({ usage: { inputTokens: input, outputTokens: output } }: Finish): Said['usage'] {
  if (input.total === undefined || output.total === undefined) return null
  return usageWith({
    inputTokens: input.total,
    outputTokens: output.total,
    cachedTokens: input.cacheRead ?? 0,
    cacheWriteTokens: input.cacheWrite ?? 0,
    reasoningTokens: output.reasoning ?? 0,
  })
}
