// A decision or an answer for one open call: whether the call waits for it, and writing it down. The first one stands.
import type { CallKey } from '../../kernel/content.ts'
import type { InboxBody } from '../../kernel/event.ts'
import { Fault } from '../../kernel/failure.ts'
import type { Proposal } from '../../kernel/content.ts'
import type { Call } from '../../kernel/ledger.ts'
import type { Services } from '../../engine/wiring.ts'
import { problemOf } from '../../models/output.ts'
import { fieldsIn, formTrouble } from '../../view/form.ts'
import { parsed } from '../../view/json.ts'
import { headOf, heldText } from '../../riders/children/tree.ts'
import { isStopped } from '../../view/pending.ts'
import type { Place } from '../await-run.ts'
import type { SentReceipt } from '../verbs.ts'
import { admit } from './enter.ts'
import { kick } from './place.ts'

export async function answered(place: Place, event: InboxBody, callId: CallKey): Promise<SentReceipt> {
  try {
    const receipt = await admit(place, { event, blobs: [] })
    if (receipt.elsewhere === undefined) kick(place)
    return receipt
  } catch (error) {
    if (!(error instanceof Fault) || error.code !== 'id_reused') throw error
    throw new Fault('decision_stale', `Call ${callId} was already decided. The first decision stands.`, error.message)
  }
}

/** The call, if it waits in this state for `what`. */
export async function openCall(
  { id, services }: Place,
  callId: CallKey,
  state: 'asked' | 'outside',
  what: string,
): Promise<Call> {
  const { store } = services
  const session = await headOf(store, id)
  if (session.held) throw new Fault('session_held', heldText(id))
  if (await isStopped(session, (each) => headOf(store, each))) {
    const text = `Call ${callId} was stopped: its run was interrupted. Nothing waits for ${what}.`
    throw new Fault('decision_stale', text)
  }
  const call = session.run?.foreign ? undefined : session.run?.turn?.open.find((c) => c.key === callId)
  if (call?.state.type === state) return call
  const code = Number(callId.split('.')[0]) <= session.seq ? 'decision_stale' : 'call_unknown'
  throw new Fault(code, `Call ${callId} is not waiting for ${what}. Run \`pending\` to see what is.`)
}

/** Throws `invalid_input` for an answer that does not fit: the fields of a question, or the `output` of a tool that is answered outside. */
export async function checkAnswered(
  services: Services,
  agent: string,
  { tool, args }: Proposal,
  content: string,
): Promise<void> {
  const trouble =
    tool === 'ask_user' ? formTrouble(fieldsIn(args), content) : await unfit(services, agent, tool, content)
  if (trouble !== null)
    throw new Fault('invalid_input', `The answer does not fit what was asked. Correct it and answer again.\n${trouble}`)
}

/** Of an agent of another program, and of tools that must be asked for, nothing is known here. */
async function unfit(services: Services, agent: string, name: string, content: string): Promise<string | null> {
  const tool = toolOf(services, agent, name)
  if (!tool?.checkOutput) return null
  const checked = await tool.checkOutput(parsed(content) ?? content)
  return checked.issues ? problemOf(checked.issues) : null
}

function toolOf(services: Services, agent: string, name: string) {
  try {
    return services.agent(agent).tools.seen?.get(name)
  } catch {
    return undefined
  }
}
