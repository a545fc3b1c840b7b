// The stage of the tests of suites: an agent whose model goes by what it reads and counts how often it is asked.
import { onTestFinished } from 'vitest'
import { memory, type Model, scripted, type Step } from '../../src/index.ts'
import { defineSuite, type EvalCase, type Suite, type SuiteOptions } from '../../src/evals/index.ts'
import type { Store } from '../../src/ports/store.ts'

export type CountedModel = Model & { readonly asked: () => number }

/** Replies by the last text that a person wrote. */
export function answering(reply: (text: string, asked: number) => Step): CountedModel {
  let asked = 0
  const model = scripted((request) => {
    asked += 1
    const said = request.messages.findLast((message) => message.role === 'user')
    const parts = said && 'parts' in said ? said.parts : []
    return reply(parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n'), asked)
  })
  return { ...model, asked: () => asked }
}

export function numbered(count: number, more: Partial<EvalCase> = {}): readonly EvalCase[] {
  return Array.from({ length: count }, (_, i) => ({ id: `case-${i + 1}`, input: `Question ${i + 1}`, ...more }))
}

/** A suite with one scorer that takes `right` for a right answer. */
export function suiteOf(model: Model, options: Partial<SuiteOptions> = {}): Suite {
  return defineSuite({
    name: 'refunds',
    agent: { model },
    cases: numbered(2),
    scorers: [({ text }) => text === 'right'],
    ...options,
  })
}

/** A store that lives as long as its test. */
export function ownStore(): Store {
  const store = memory()
  onTestFinished(() => store.close())
  return store
}
