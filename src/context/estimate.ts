// Estimates how many tokens a text has before a provider has counted it, from its kinds of characters. Pure.
import type { Part } from '../kernel/content.ts'
import type { Event } from '../kernel/event.ts'
import type { Message } from '../kernel/transcript.ts'
import { CHARS_A_TOKEN, sizeOfMessage } from '../view/session-history.ts'

/** Characters per token, by kind: letters and blanks, digits and signs, and everything that is not ASCII. */
const LETTERS = CHARS_A_TOKEN
const SIGNS = 2.2
const OTHERS = 1
/** Of a longer text, this many characters are sampled at equal distances. */
const SAMPLE_CHARS = 2_000

/** A text counts as at most this many times its guessed tokens. */
export const LEARNED_FACTOR = 4
/** No token has fewer characters than this. */
export const CHARS_A_TOKEN_MIN = 0.25
/** The most tokens with which a provider marks the beginning and end of a message. */
const MESSAGE_TOKENS = 16

/** The guessed number of characters per token of this text. */
export function guessCharsPerToken(text: string): number {
  const step = Math.max(1, text.length / SAMPLE_CHARS)
  let [looked, tokens] = [0, 0]
  for (let at = 0; at < text.length; at += step) {
    looked += 1
    tokens += 1 / charsPerTokenOf(text.charCodeAt(Math.floor(at)))
  }
  return looked === 0 ? LETTERS : looked / tokens
}

function charsPerTokenOf(code: number): number {
  if (code > 126) return OTHERS
  const isLetter = (code | 32) >= 97 && (code | 32) <= 122
  return isLetter || code <= 32 ? LETTERS : SIGNS
}

/**
 * The estimated tokens of content that is `chars` long, of which `text` is the text part. `learned` is the characters
 * per token of what the provider counted last. The smaller of that and the guess is used, because too many tokens do
 * less harm than too few.
 */
export function estimateTokens(chars: number, text: string, learned: number): number {
  return tokensAtRatio(chars, text, Math.min(learned, guessCharsPerToken(text)))
}

/**
 * The same for a known number of characters per token of the text. For pictures and files, the size itself is an
 * estimate.
 */
export function tokensAtRatio(chars: number, { length }: string, charsPerToken: number): number {
  const texts = Math.min(chars, length)
  return Math.ceil(texts / charsPerToken + (chars - texts) / CHARS_A_TOKEN)
}

export function estimateMessage(message: Message, learned: number): number {
  return estimateTokens(sizeOfMessage(message), textOfMessage(message), learned)
}

/** The most tokens that any provider makes of content that is `chars` long, of which `text` is the text part. */
export function maxTokensOf(chars: number, text: string): number {
  const texts = Math.min(chars, text.length)
  return (LEARNED_FACTOR * texts) / guessCharsPerToken(text) + (chars - texts) / CHARS_A_TOKEN_MIN
}

export function maxMessageTokens(message: Message): number {
  return MESSAGE_TOKENS + maxTokensOf(sizeOfMessage(message), textOfMessage(message))
}

/** The text that a model reads of an event, without pictures and files. */
export function textOfEvent(event: Event): string {
  switch (event.type) {
    case 'user.message':
      return textOfParts(event.parts)
    case 'agent.tool_result':
    case 'user.custom_tool_result':
      return typeof event.content === 'string' ? event.content : ''
    case 'note.added':
      return event.text
    default:
      return ''
  }
}

function textOfMessage(message: Message): string {
  if (message.role === 'tool') return typeof message.content === 'string' ? message.content : ''
  return textOfParts(message.parts)
}

function textOfParts(parts: readonly Part[]): string {
  const [first, ...more] = parts
  // Nearly all messages have one part: return its text without a copy.
  if (first?.type === 'text' && more.length === 0) return first.text
  return parts.map((part) => (part.type === 'text' || part.type === 'reasoning' ? part.text : '')).join('')
}
