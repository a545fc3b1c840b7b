// The editor on the other side of a connection: what it can do, and what it is asked. An answer counts only if it is one of the options
// that were offered; everything else decides nothing.
import {
  type AgentContext,
  type ClientCapabilities,
  type CreateElicitationRequest,
  type ElicitationPropertySchema,
  methods,
  type PermissionOption,
  type RequestPermissionRequest,
  type SessionUpdate,
  type ToolCallUpdate,
} from '@agentclientprotocol/sdk'

/** `gone`: it was withdrawn, or the editor said `cancelled`. `refused`: the editor cannot ask. */
export type Chosen =
  | { readonly type: 'chosen'; readonly id: string }
  | { readonly type: 'gone' }
  | { readonly type: 'refused' }

export class Editor {
  readonly #client: AgentContext
  readonly capabilities: ClientCapabilities

  constructor(client: AgentContext, capabilities: ClientCapabilities) {
    this.#client = client
    this.capabilities = capabilities
  }

  async update(sessionId: string, update: SessionUpdate): Promise<void> {
    await this.#client.notify(methods.client.session.update, { sessionId, update })
  }

  /** For editors that show notices. Others are told nothing: it is not what the agent said. */
  async notice(sessionId: string, title: string): Promise<void> {
    if (!this.capabilities.session?.notices) return
    await this.update(sessionId, { sessionUpdate: 'notice', severity: 'info', title })
  }

  async choose(sessionId: string, toolCall: ToolCallUpdate, options: Offered, signal: AbortSignal): Promise<Chosen> {
    try {
      const params: RequestPermissionRequest = { sessionId, toolCall, options: [...options] }
      const { outcome } = await this.#client.request(methods.client.session.requestPermission, params, waiting(signal))
      if (outcome.outcome === 'cancelled' || signal.aborted) return { type: 'gone' }
      const chosen = options.find(({ optionId }) => optionId === outcome.optionId)
      return chosen ? { type: 'chosen', id: chosen.optionId } : { type: 'refused' }
    } catch {
      return { type: signal.aborted ? 'gone' : 'refused' }
    }
  }

  get hasForms(): boolean {
    return Boolean(this.capabilities.elicitation?.form)
  }

  /** One question with one answer. `later`: the person closed the form. `no`: they will not answer. */
  async fill(sessionId: string, toolCallId: string, asked: Asked, signal: AbortSignal): Promise<Filled> {
    const { question, choices } = asked
    const wanted = choices.length > 0 ? { enum: [...choices] } : { minLength: 1 }
    const answer: ElicitationPropertySchema = { type: 'string', title: 'Answer', ...wanted }
    const params: CreateElicitationRequest = {
      mode: 'form',
      sessionId,
      toolCallId,
      message: question,
      requestedSchema: { type: 'object', properties: { answer }, required: ['answer'] },
    }
    try {
      const said = await this.#client.request(methods.client.elicitation.create, params, waiting(signal))
      if (signal.aborted) return { type: 'gone' }
      if (said.action === 'decline') return { type: 'no' }
      const { content } = said as { readonly content?: Readonly<Record<string, unknown>> | null }
      const given = said.action === 'accept' ? content?.['answer'] : undefined
      return typeof given === 'string' && given.trim() !== '' ? { type: 'answer', text: given } : { type: 'later' }
    } catch {
      return { type: signal.aborted ? 'gone' : 'later' }
    }
  }
}

type Offered = readonly PermissionOption[]
type Asked = { readonly question: string; readonly choices: readonly string[] }
export type Filled = { readonly type: 'answer'; readonly text: string } | { readonly type: 'no' | 'later' | 'gone' }

/** A question that is withdrawn is not waited for any more. */
function waiting(signal: AbortSignal) {
  return { cancellationSignal: signal, stopWaitingOnCancel: true }
}
