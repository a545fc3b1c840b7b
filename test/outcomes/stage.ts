// The stage of the tests of outcomes: a harness whose one model works and grades, from two scripts, and looks at pursuits.
import { expect, onTestFinished } from 'vitest'
import {
  type Event,
  Harness,
  type HarnessOptions,
  memory,
  type Request,
  scripted,
  type Session,
  type Step,
} from '../../src/index.ts'
import { graderId } from '../../src/view/pursuits.ts'
import { until } from '../until.ts'
import { isGrading, look, type Pursued, verdict } from './scripts.ts'

export type Scripts = {
  readonly work?: (request: Request, n: number) => Step | Promise<Step>
  readonly grade?: (request: Request, n: number) => Step | Promise<Step>
}

/** `asked` has every request, in order. */
function twoScripts({ work = () => 'A poem.', grade = () => verdict(2) }: Scripts = {}) {
  const asked = { work: [] as Request[], grade: [] as Request[] }
  const model = scripted(async (request) => {
    const list = isGrading(request) ? asked.grade : asked.work
    // A session's list of messages grows in place.
    list.push({ ...request, messages: [...request.messages] })
    return isGrading(request) ? grade(request, list.length) : work(request, list.length)
  })
  return { model, asked }
}

export function stage(scripts: Scripts = {}, options: Partial<HarnessOptions> = {}) {
  const { model, asked } = twoScripts(scripts)
  const reports: string[] = []
  const harness = new Harness({
    model,
    store: memory(),
    onError: (where, error) => void reports.push(`${where}: ${error instanceof Error ? error.message : String(error)}`),
    ...options,
  })
  onTestFinished(() => harness.close())
  return { harness, asked, reports }
}

/** The state of the pursuit once it has ended. */
export function ended(session: Pick<Session, 'status'>): Promise<Pursued> {
  return until(async () => {
    const pursuit = await look(session)
    expect(pursuit.end).not.toBeNull()
    return pursuit
  })
}

export async function eventsOf(harness: Pick<Harness, 'session'>, id: string): Promise<readonly Event[]> {
  const events: Event[] = []
  for (let after: number | null = 0; after !== null; ) {
    const page: { readonly events: readonly Event[]; readonly next: number | null } = await harness
      .session(id, { stored: true })
      .events({ after })
    events.push(...page.events)
    after = page.next
  }
  return events
}

/** The messages of rounds in the session. */
export async function roundsIn(harness: Pick<Harness, 'session'>, id: string): Promise<readonly string[]> {
  const messages = (await eventsOf(harness, id)).filter((event) => event.type === 'user.message')
  return messages.filter(({ id: name }) => name.startsWith('terret:outcome:')).map(({ id: name }) => name)
}

/** How many replies of a model the grader of this round got. */
export async function gradings(harness: Pick<Harness, 'session'>, fingerprint: string, round: number): Promise<number> {
  const events = await eventsOf(harness, graderId(fingerprint, round))
  return events.filter(({ type }) => type === 'agent.message').length
}
