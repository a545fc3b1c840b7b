// A reply of the script before its dialect: ids, pieces and counts, all deterministic.
import type { Frozen, Usage } from '../kernel/content.ts'
import { fieldsOf } from './fields.ts'
import type { ChaosRequest, ChaosModelReply, Dialect, ChaosDamage } from './chaos-script.ts'
import { asString } from '../view/untrusted-json.ts'

export type AnswerCall = Frozen<{ id: string; tool: string; args: string; pieces: readonly string[] }>

export type AnswerReasoning = Frozen<{
  text: string
  pieces: readonly string[]
  signature: string
  encrypted: string
  /** Whether the script gave the signature. */
  signed: boolean
  redacted: boolean
}>

export type ChaosAnswer = Frozen<{
  /** The number of earlier replies: part of every id. */
  n: number
  asked: ChaosRequest
  model: string
  text: string
  pieces: readonly string[]
  reasoning: AnswerReasoning | null
  calls: readonly AnswerCall[]
  /** Known words are translated by the dialect; others are sent unchanged. */
  finish: string
  usage: Usage | null
  usageTimes: number
}>

const CALL_PREFIX: Readonly<Record<Dialect, string>> = { messages: 'toolu', responses: 'call', chat: 'call' }

/** A fixed time: a clock would make two runs differ. */
export const CREATED_SECONDS = 1_750_000_000

export function buildAnswer(said: ChaosModelReply, asked: ChaosRequest, n: number): ChaosAnswer {
  const { text = '', chaos = {}, deltas = 1 } = said
  const reasoning = reasoningOf(said, n)
  const calls = callsOf(said, asked.dialect, n)
  const finish = chaos.finish ?? said.finish ?? (calls.length > 0 ? 'calls' : 'stop')
  return {
    n,
    asked,
    model: said.model ?? (asString(fieldsOf(asked.body).model) || 'chaos'),
    text,
    pieces: piecesOf(text, deltas),
    reasoning,
    calls,
    finish,
    usage: usageOf(said, asked, { reasoning, calls }),
    usageTimes: chaos.wrongUsage === 'triple' ? 3 : 1,
  }
}

function reasoningOf({ reasoning, deltas = 1 }: ChaosModelReply, n: number): AnswerReasoning | null {
  if (reasoning === undefined) return null
  const given = typeof reasoning === 'string' ? { text: reasoning } : reasoning
  return {
    text: given.text,
    pieces: piecesOf(given.text, deltas),
    signature: given.signature ?? opaqueText(`signature ${n}`),
    encrypted: given.encrypted ?? opaqueText(`encrypted ${n}`),
    signed: given.signature !== undefined,
    redacted: given.redacted === true,
  }
}

function callsOf({ calls = [], chaos = {}, deltas = 1 }: ChaosModelReply, dialect: Dialect, n: number): AnswerCall[] {
  const ids = calls.map(({ id }, at) => id ?? `${CALL_PREFIX[dialect]}_chaos_${n}_${at}`)
  return calls.map(({ tool, args = {}, rawArgs }, at) => {
    const sent = rawArgs ?? JSON.stringify(args)
    return { id: idOf(ids, at, chaos), tool, args: sent, pieces: piecesOf(sent, deltas) }
  })
}

function idOf(ids: readonly string[], at: number, { duplicateIds, blankIds }: ChaosDamage): string {
  if (blankIds) return ''
  return (duplicateIds ? ids[0] : ids[at]) ?? ''
}

/** About four characters a token, as the providers say of English. */
const TOKEN_CHARS = 4

function usageOf(
  { usage, text = '', chaos = {} }: ChaosModelReply,
  asked: ChaosRequest,
  made: Pick<ChaosAnswer, 'reasoning' | 'calls'>,
): Usage | null {
  if (chaos.wrongUsage === 'missing') return null
  if (chaos.wrongUsage === 'absurd') return { inputTokens: -1, outputTokens: 1e21 }
  if (usage !== undefined) return usage
  const thought = made.reasoning?.text.length ?? 0
  const written = made.calls.reduce((sum, { tool, args }) => sum + tool.length + args.length, text.length)
  const plain = {
    inputTokens: tokenCount(JSON.stringify(asked.body).length),
    outputTokens: Math.max(1, tokenCount(written + thought)),
  }
  return made.reasoning === null ? plain : { ...plain, reasoningTokens: tokenCount(thought) }
}

function tokenCount(chars: number): number {
  return Math.ceil(chars / TOKEN_CHARS)
}

/** Splits between characters; send-answer.ts splits bytes. */
function piecesOf(text: string, count: number): readonly string[] {
  const characters = Array.from(text)
  const size = Math.max(1, Math.ceil(characters.length / Math.max(1, count)))
  const pieces: string[] = []
  for (let at = 0; at < characters.length; at += size) pieces.push(characters.slice(at, at + size).join(''))
  return pieces
}

function opaqueText(text: string): string {
  return Buffer.from(`terret chaos ${text}`).toString('base64')
}
