// Records a decision or an answer for one open call, after checking that the call waits for it. The first one stands.
import type { CallKey, Proposal } from '../../kernel/content.ts'
import type { InboxBody } from '../../kernel/event.ts'
import { Fault } from '../../kernel/failure.ts'
import type { Call } from '../../kernel/ledger.ts'
import type { Services } from '../../runtime/state/runtime-ports.ts'
import { problemOf } from '../../models/structured-output.ts'
import { fieldsIn, whyFormRefused } from '../../view/form-fields.ts'
import { parseJson } from '../../view/untrusted-json.ts'
import { readSessionHead } from '../../runtime/state/session-tree.ts'
import { importHeldText } from '../../view/session-program.ts'
import { isInterrupted } from '../../view/pending-calls.ts'
import type { SessionAccess } from '../await-run.ts'
import type { SentReceipt } from '../verbs.ts'
import { admitToInbox } from './enter.ts'
import { wakeSession } from './place.ts'

export async function recordAnswer(place: SessionAccess, event: InboxBody, callId: CallKey): Promise<SentReceipt> {
  try {
    const receipt = await admitToInbox(place, { event, blobs: [] })
    if (receipt.elsewhere === undefined) wakeSession(place)
    return receipt
  } catch (error) {
    if (!(error instanceof Fault) || error.code !== 'id_reused') throw error
    throw new Fault('decision_stale', `Call ${callId} was already decided. The first decision stands.`, error.message)
  }
}

/** Returns the call if it waits in this state. `what` names the expected input in error texts. */
export async function findOpenCall(
  { id, services }: SessionAccess,
  callId: CallKey,
  state: 'asked' | 'outside',
  what: string,
): Promise<Call> {
  const { store } = services
  const session = await readSessionHead(store, id)
  if (session.held) throw new Fault('session_held', importHeldText(id))
  if (await isInterrupted(session, (each) => readSessionHead(store, each))) {
    const text = `Call ${callId} was stopped: its run was interrupted. Nothing waits for ${what}.`
    throw new Fault('decision_stale', text)
  }
  const call = session.run?.foreign ? undefined : session.run?.turn?.open.find((c) => c.key === callId)
  if (call?.state.type === state) return call
  const code = Number(callId.split('.')[0]) <= session.seq ? 'decision_stale' : 'call_unknown'
  throw new Fault(code, `Call ${callId} is not waiting for ${what}. Run \`pending\` to see what is.`)
}

/**
 * Throws `invalid_input` for an answer that does not fit the fields of a question, or the `output` of a tool that is
 * answered outside.
 */
export async function checkAnswerFits(
  services: Services,
  agent: string,
  { tool, args }: Proposal,
  content: string,
): Promise<void> {
  const trouble =
    tool === 'ask_user' ? whyFormRefused(fieldsIn(args), content) : await whyUnfit(services, agent, tool, content)
  if (trouble !== null)
    throw new Fault('invalid_input', `The answer does not fit what was asked. Correct it and answer again.\n${trouble}`)
}

/**
 * An agent of another program, and tools of sources that were not asked yet, are not known here and are not checked.
 */
async function whyUnfit(services: Services, agent: string, name: string, content: string): Promise<string | null> {
  const tool = findTool(services, agent, name)
  if (!tool?.checkOutput) return null
  const checked = await tool.checkOutput(parseJson(content) ?? content)
  return checked.issues ? problemOf(checked.issues) : null
}

function findTool(services: Services, agent: string, name: string) {
  try {
    return services.agent(agent).tools.seen?.get(name)
  } catch {
    return undefined
  }
}
