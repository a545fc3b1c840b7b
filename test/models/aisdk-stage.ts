// Models of the AI SDK for tests: its real provider packages over recorded bytes, and its own mock over written parts.
import { readFileSync } from 'node:fs'
import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import type { LanguageModelV3, LanguageModelV3StreamPart, LanguageModelV3Usage } from '@ai-sdk/provider'
import { MockLanguageModelV3 } from 'ai/test'
import { createAnthropic as createAnthropicV4 } from 'ai-sdk-anthropic-v4'
import { createOpenAICompatible as createOpenAICompatibleV4 } from 'ai-sdk-openai-compatible-v4'
import { createOpenAI as createOpenAIV4 } from 'ai-sdk-openai-v4'
import type { LanguageModelV4, LanguageModelV4CallOptions, LanguageModelV4StreamPart } from 'ai-sdk-provider-v4'

export type Dialect = 'messages' | 'chat' | 'responses'

type Sent = { readonly body: unknown; readonly signal: AbortSignal | null }

/** A client that answers with these bytes, and what it was sent. */
export function client(answer: () => Response | Promise<Response>) {
  const sent: Sent[] = []
  const fetch = async (_url: unknown, init?: RequestInit): Promise<Response> => {
    const body = typeof init?.body === 'string' ? (JSON.parse(init.body) as unknown) : null
    sent.push({ body, signal: init?.signal ?? null })
    return answer()
  }
  return { fetch, sent }
}

export function bytesOf(name: string): Uint8Array {
  return readFileSync(new URL(`../recordings/${name}.sse`, import.meta.url))
}

export function streamed(bytes: Uint8Array): Response {
  return new Response(bytes.slice(), { headers: { 'content-type': 'text/event-stream' } })
}

/** The specifications that are taken, each with the real packages of its major. */
export const VERSIONS = ['v3', 'v4'] as const
export type Version = (typeof VERSIONS)[number]

export function modelOf(
  dialect: Dialect,
  fetch: typeof globalThis.fetch,
  version: Version = 'v3',
): LanguageModelV3 | LanguageModelV4 {
  if (version === 'v4') return modelOfV4(dialect, fetch)
  if (dialect === 'messages') return createAnthropic({ apiKey: 'k', fetch })('claude-sonnet-4-5')
  if (dialect === 'responses') return createOpenAI({ apiKey: 'k', fetch }).responses('gpt-5.2')
  return createOpenAICompatible({ name: 'host', baseURL: 'http://host/v1', fetch, includeUsage: true }).chatModel('m')
}

function modelOfV4(dialect: Dialect, fetch: typeof globalThis.fetch): LanguageModelV4 {
  if (dialect === 'messages') return createAnthropicV4({ apiKey: 'k', fetch })('claude-sonnet-4-5')
  if (dialect === 'responses') return createOpenAIV4({ apiKey: 'k', fetch }).responses('gpt-5.2')
  const options = { name: 'host', baseURL: 'http://host/v1', fetch, includeUsage: true }
  return createOpenAICompatibleV4(options).chatModel('m')
}

/** A model of specification v4 that streams these parts, and what it was asked. */
export function mockV4(parts: readonly LanguageModelV4StreamPart[] | ReadableStream<LanguageModelV4StreamPart>) {
  const asked: LanguageModelV4CallOptions[] = []
  const model: LanguageModelV4 = {
    specificationVersion: 'v4',
    provider: 'mock.chat',
    modelId: 'm',
    supportedUrls: {},
    doGenerate: () => Promise.reject(new Error('not streamed')),
    doStream: (options) => {
      asked.push(options)
      return Promise.resolve({ stream: parts instanceof ReadableStream ? parts : ReadableStream.from(parts) })
    },
  }
  return { model, asked }
}

const usage: LanguageModelV3Usage = {
  inputTokens: { total: 100, noCache: 60, cacheRead: 40, cacheWrite: undefined },
  outputTokens: { total: 10, text: 10, reasoning: undefined },
}
export const finish = (
  unified: 'stop' | 'tool-calls' | 'length' | 'other' | 'error',
  raw: string | undefined = unified,
) => {
  return { type: 'finish', usage, finishReason: { unified, raw } } as const
}

/** A model that streams these parts, one list a call. */
export function mock(...replies: readonly (readonly LanguageModelV3StreamPart[])[]): MockLanguageModelV3 {
  let n = 0
  return new MockLanguageModelV3({
    provider: 'mock.chat',
    modelId: 'm',
    doStream: async () => {
      const parts = replies[n++] ?? []
      return { stream: ReadableStream.from(parts) }
    },
  })
}
