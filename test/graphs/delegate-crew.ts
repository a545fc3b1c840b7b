// The agents of a delegation, played by a script: it knows them by what they were told to be. For the tests and for child-ends.ts.
import { type Model, scripted, type Step } from '../../src/index.ts'

export const NO = JSON.stringify({ approved: false, findings: ['The lamp is not lit.'] })
export const YES = JSON.stringify({ approved: true, findings: [] })

export type Says = {
  readonly plan?: () => Step | Promise<Step>
  readonly execute?: (n: number) => Step | Promise<Step>
  readonly review?: (n: number) => Step | Promise<Step>
  readonly lead?: (n: number) => Step
}

export function delegateCrew({ plan, execute, review, lead }: Says = {}): {
  readonly model: Model
  /** Who was asked, in order, and with what. */
  readonly asked: string[]
  readonly tasks: string[]
} {
  const asked: string[] = []
  const tasks: string[] = []
  const count = { execute: 0, review: 0, lead: 0 }
  const model = scripted(({ instructions, messages }) => {
    const first = messages.find(({ role }) => role === 'user')
    tasks.push(
      first?.role === 'user' ? first.parts.map((part) => (part.type === 'text' ? part.text : '')).join('') : '',
    )
    if (instructions.startsWith('You plan')) {
      asked.push('plan')
      return plan?.() ?? 'Light the lamp, then look at it.'
    }
    if (instructions.startsWith('You do')) {
      asked.push('execute')
      count.execute += 1
      return execute?.(count.execute) ?? `Work ${count.execute} is done.`
    }
    if (instructions.startsWith('You review')) {
      asked.push('review')
      count.review += 1
      return review?.(count.review) ?? YES
    }
    asked.push('lead')
    count.lead += 1
    return lead?.(count.lead) ?? 'Nobody asked me.'
  })
  return { model, asked, tasks }
}
