// What models say in the tests of outcomes, and a look at a pursuit. Also for processes that no test runner started.
import { type Model, type PursuitStatus, type Request, scripted, type Session, type Step } from '../../src/index.ts'

export const TASK = { description: 'Write a poem.', rubric: '- It rhymes.\n- It has four lines.' } as const

export type Pursued = Exclude<PursuitStatus, { state: 'missing_outcome' }>

/** A verdict about the two criteria of `TASK`, by how many are met. */
export function verdict(met: number, summary = `${met} of 2`): Step {
  const criteria = ['It rhymes', 'Four lines'].map((criterion, i) => ({
    criterion,
    met: i < met ? 'yes' : 'no',
    why: `because ${i}`,
  }))
  return { calls: [{ tool: 'final_result', args: { criteria, summary } }] }
}

export function isGrading(request: Request): boolean {
  return request.instructions.startsWith('You grade a result')
}

/** The last text of a user in this request. */
export function lastText(request: Request): string {
  const said = request.messages.findLast(({ role }) => role === 'user')
  return said?.role === 'user' ? said.parts.map((part) => (part.type === 'text' ? part.text : '')).join('') : ''
}

export async function look(session: Pick<Session, 'status'>): Promise<Pursued> {
  const { pursuit } = await session.status({ include: ['pursuit'] })
  if (pursuit.state === 'missing_outcome') throw new Error('nothing is pursued')
  return pursuit
}

/** What it says follows from what it reads, so that every process says the same. The third poem meets everything. */
export function poet(): Model {
  return scripted((request) => {
    const text = lastText(request)
    if (isGrading(request)) return verdict(Number(/Poem (\d)/.exec(text)?.[1]) - 1)
    return `Poem ${/^Round (\d)/.exec(text)?.[1] ?? 1}.`
  })
}
