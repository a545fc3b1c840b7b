// The ids of the sessions that a suite opens, and the names they are made of. Pure but for the hash.
import { hash } from 'node:crypto'
import type { Labels } from '../kernel/content.ts'
import type { Check } from '../options.ts'
import { canonicalJson } from '../tools/core/canonical-json.ts'

const SUITE = /^[A-Za-z0-9_-]{1,40}$/
const CASE = /^[A-Za-z0-9_-]{1,60}$/
const HASH_CHARS = 12

export const whyNotSuiteName: Check = (value) =>
  typeof value === 'string' && SUITE.test(value) ? null : 'must be 1 to 40 letters, digits, "_" or "-"'
export const whyNotCaseId: Check = (value) =>
  typeof value === 'string' && CASE.test(value) ? null : 'must be 1 to 60 letters, digits, "_" or "-"'

/** Equal for equal values, whatever the order of their keys. */
export function shortHash(value: unknown): string {
  return hash('sha256', canonicalJson(value)).slice(0, HASH_CHARS)
}

export type TrialName = { readonly suite: string; readonly id: string; readonly hash: string; readonly n: number }

/** `again`: how many earlier sessions of this trial ended in an error that was not the agent's. */
export function trialSession({ suite, id, hash: of, n }: TrialName, again = 0): string {
  return `eval.${suite}.${id}.${of}.${n}${again === 0 ? '' : `.r${again}`}`
}

/** The session of one question to a judge. The same question is asked once. */
export function judgeSession(question: unknown, vote: number): string {
  return `judge.${hash('sha256', canonicalJson(question)).slice(0, 2 * HASH_CHARS)}.${vote}`
}

/** The session that keeps a report. */
export function reportSession(suite: string, run: string): string {
  return `report.${suite}.${run}`
}

/** By these labels sessions of suites are listed: of one suite, or of all. */
export function evalLabels(kind: 'trial' | 'judge' | 'report', suite: string | null): Labels {
  return { 'eval-kind': kind, ...(suite === null ? {} : { eval: suite }) }
}
