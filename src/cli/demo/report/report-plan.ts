// The plan of a report: questions, and the words that would answer them. Built by fixed rules, or read from a model's
// plan. Pure.
import { escapeForPrompt } from '../../../workflows/prompt-block.ts'
import { clipTrimmed, collapseText, stemsIn, termsIn } from './sentences.ts'

/** `any`: the terms are synonyms, so one of them is enough for an answer. */
export type ReportQuestion = { readonly text: string; readonly terms: readonly string[]; readonly any?: true }
export type ReportPlan = { readonly questions: readonly ReportQuestion[] }

const QUESTIONS_MAX = 6
const TERMS_MAX = 8
const QUESTION_CHARS_MAX = 200

/**
 * "The sick-room: light, tea and clean beds" has three questions. A topic without a list is one question, and each of
 * its words is another.
 */
export function planByRules(topic: string): ReportPlan {
  const whole = clipTrimmed(collapseText(topic), QUESTION_CHARS_MAX)
  const parts = listedParts(whole)
  if (parts.length > 1) return { questions: parts.slice(0, QUESTIONS_MAX).map(questionAbout) }
  const terms = termsIn(whole)
  const own = { text: whole, terms: terms.slice(0, TERMS_MAX) }
  if (terms.length < 2 || terms.length > TERMS_MAX) return { questions: [own] }
  return { questions: [own, ...terms.slice(0, QUESTIONS_MAX - 1).map(questionAbout)] }
}

function questionAbout(part: string): ReportQuestion {
  return { text: `What is said about ${part}?`, terms: termsIn(part).slice(0, TERMS_MAX) }
}

/** The parts of a list after a colon or after "about". */
function listedParts(topic: string): readonly string[] {
  const list = /(?::\s+|：\s*|\babout\s+)(.+)$/u.exec(topic)?.[1] ?? topic
  const parts = list
    .replace(/[?!.？！。؟।]+$/u, '')
    .split(/\s*[,;，、；،؛]\s*(?:and\s+|or\s+)?|\s+(?:and|or)\s+/u)
    .map((part) => part.trim())
  return [...new Set(parts)].filter((part) => termsIn(part).length > 0)
}

/** The number of terms in a sentence; 0 if they are too few for an answer. */
export type CountTerms = (stems: ReadonlySet<string>) => number

/** A term of several words counts only if all of them are there. */
export function makeTermCounter({ terms, any }: ReportQuestion): CountTerms {
  const wanted = terms.map((term) => [...stemsIn(term)])
  const least = any ? 1 : Math.max(1, Math.ceil(terms.length / 2))
  return (stems) => {
    const hits = wanted.filter((words) => words.every((word) => stems.has(word))).length
    return hits >= least ? hits : 0
  }
}

/** The schema of a planner's answer: questions with the words to look for. */
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

/** Reads a model's plan, and keeps the meaningful words of its terms. The schema has already checked the answer. */
export function readReportPlan(answer: string): ReportPlan {
  const { questions } = JSON.parse(answer) as ReportPlan
  return {
    questions: questions.map(({ text, terms }) => {
      const given = [...new Set(terms.map((term) => termsIn(term).join(' ')))].filter((term) => term !== '')
      return {
        text: escapeForPrompt(collapseText(text)),
        terms: given.length > 0 ? given : termsIn(text).slice(0, TERMS_MAX),
        any: true,
      }
    }),
  }
}
