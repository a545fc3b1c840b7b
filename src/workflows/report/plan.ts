// The plan of a report: questions, and the words that would answer them. Made by fixed rules, or read from a model's plan. Pure.
import { told } from '../block.ts'
import { clippedTrimmed, collapsed, stemsIn, termsIn } from './text.ts'

/** `any`: the terms are synonyms, so each of them is an answer. */
export type Question = { readonly text: string; readonly terms: readonly string[]; readonly any?: true }
export type Plan = { readonly questions: readonly Question[] }

const QUESTIONS_MAX = 6
const TERMS_MAX = 8
const QUESTION_CHARS_MAX = 200

/**
 * "The sick-room: light, tea and clean beds" asks three things. Without a list, the topic itself is the question, and then each of
 * its words.
 */
export function planOf(topic: string): Plan {
  const whole = clippedTrimmed(collapsed(topic), QUESTION_CHARS_MAX)
  const parts = partsOf(whole)
  if (parts.length > 1) return { questions: parts.slice(0, QUESTIONS_MAX).map(aboutIt) }
  const terms = termsIn(whole)
  const own = { text: whole, terms: terms.slice(0, TERMS_MAX) }
  if (terms.length < 2 || terms.length > TERMS_MAX) return { questions: [own] }
  return { questions: [own, ...terms.slice(0, QUESTIONS_MAX - 1).map(aboutIt)] }
}

function aboutIt(part: string): Question {
  return { text: `What is said about ${part}?`, terms: termsIn(part).slice(0, TERMS_MAX) }
}

/** The list after a colon or after "about". */
function partsOf(topic: string): readonly string[] {
  const list = /(?::\s+|：\s*|\babout\s+)(.+)$/u.exec(topic)?.[1] ?? topic
  const parts = list
    .replace(/[?!.？！。؟।]+$/u, '')
    .split(/\s*[,;，、；،؛]\s*(?:and\s+|or\s+)?|\s+(?:and|or)\s+/u)
    .map((part) => part.trim())
  return [...new Set(parts)].filter((part) => termsIn(part).length > 0)
}

/** The number of terms in a sentence, if that is enough for an answer. */
export type Seek = (stems: ReadonlySet<string>) => number

/** A term of several words is there with all of them. */
export function seek({ terms, any }: Question): Seek {
  const wanted = terms.map((term) => [...stemsIn(term)])
  const least = any ? 1 : Math.max(1, Math.ceil(terms.length / 2))
  return (stems) => {
    const hits = wanted.filter((words) => words.every((word) => stems.has(word))).length
    return hits >= least ? hits : 0
  }
}

/** The answer of a planner: questions with the words to look for. */
export const PLAN_SCHEMA = {
  type: 'object',
  properties: {
    questions: {
      type: 'array',
      minItems: 1,
      maxItems: QUESTIONS_MAX,
      items: {
        type: 'object',
        properties: {
          text: { type: 'string', minLength: 3, maxLength: QUESTION_CHARS_MAX },
          terms: {
            type: 'array',
            minItems: 1,
            maxItems: TERMS_MAX,
            items: { type: 'string', minLength: 1, maxLength: 40 },
          },
        },
        required: ['text', 'terms'],
        additionalProperties: false,
      },
    },
  },
  required: ['questions'],
  additionalProperties: false,
} as const

/** A model's plan with the meaningful words of its terms. The answer was validated already. */
export function plannedBy(answer: string): Plan {
  const { questions } = JSON.parse(answer) as Plan
  return {
    questions: questions.map(({ text, terms }) => {
      const given = [...new Set(terms.map((term) => termsIn(term).join(' ')))].filter((term) => term !== '')
      return {
        text: told(collapsed(text)),
        terms: given.length > 0 ? given : termsIn(text).slice(0, TERMS_MAX),
        any: true,
      }
    }),
  }
}
