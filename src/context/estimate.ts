// How many tokens a text has before a provider has counted it: guessed from its kinds of characters. Pure.
import type { Part } from '../kernel/content.ts'
import type { Event } from '../kernel/event.ts'
import type { Message } from '../kernel/transcript.ts'
import { CHARS_A_TOKEN, sizeOfMessage } from '../view/history.ts'

/** Characters a token, by kind: letters and blanks, digits and signs, and everything that is not ASCII. */
const LETTERS = CHARS_A_TOKEN
const SIGNS = 2.2
const OTHERS = 1
/** Of a longer text so many characters are looked at, evenly spread. */
const SAMPLE_CHARS = 2_000

/** A text is taken to have so many times the guessed tokens at most. */
export const LEARNED_FACTOR = 4
/** Fewer characters no token has. */
export const CHARS_A_TOKEN_MIN = 0.25
/** How a provider marks where a message begins and ends: so many tokens at most. */
const MESSAGE_TOKENS = 16

/** How many characters of this text are a token, guessed. */
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
 * The tokens of something that is `chars` long, of which `text` is the part that is text. `learned` is how many characters a token had
 * in what the provider counted last: the smaller of that and the guess is taken, because too many tokens do less harm than too few.
 */
export function estimateTokens(chars: number, text: string, learned: number): number {
  return tokensAt(chars, text, Math.min(learned, guessCharsPerToken(text)))
}

/** The same where it is known how many characters of its text are a token. Of pictures and files the size itself is an estimate. */
export function tokensAt(chars: number, { length }: string, charsPerToken: number): number {
  const texts = Math.min(chars, length)
  return Math.ceil(texts / charsPerToken + (chars - texts) / CHARS_A_TOKEN)
}

export function estimateMessage(message: Message, learned: number): number {
  return estimateTokens(sizeOfMessage(message), textOfMessage(message), learned)
}

/** No provider makes more tokens of something that is `chars` long, of which `text` is the part that is text. */
export function mostTokens(chars: number, text: string): number {
  const texts = Math.min(chars, text.length)
  return (LEARNED_FACTOR * texts) / guessCharsPerToken(text) + (chars - texts) / CHARS_A_TOKEN_MIN
}

export function mostTokensOf(message: Message): number {
  return MESSAGE_TOKENS + mostTokens(sizeOfMessage(message), textOfMessage(message))
}

/** The text that a model reads of an event, pictures and files left out. */
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
  // Nearly all have one part: nothing is copied for them.
  if (first?.type === 'text' && more.length === 0) return first.text
  return parts.map((part) => (part.type === 'text' || part.type === 'reasoning' ? part.text : '')).join('')
}
