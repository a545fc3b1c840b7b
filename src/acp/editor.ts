// The editor at the other end of a connection: its capabilities, and the questions it is asked. An answer counts only
// if it is one of the offered options; everything else decides nothing.
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

/** `gone`: the question was withdrawn, or the editor answered `cancelled`. `refused`: the editor cannot ask. */
export type PermissionChoice =
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

  /** Sends a notice to editors that show notices. Other editors get nothing, because the agent did not say it. */
  async notice(sessionId: string, title: string): Promise<void> {
    if (!this.capabilities.session?.notices) return
    await this.update(sessionId, { sessionUpdate: 'notice', severity: 'info', title })
  }

  async choose(
    sessionId: string,
    toolCall: ToolCallUpdate,
    options: PermissionOptions,
    signal: AbortSignal,
  ): Promise<PermissionChoice> {
    try {
      const params: RequestPermissionRequest = { sessionId, toolCall, options: [...options] }
      const { outcome } = await this.#client.request(
        methods.client.session.requestPermission,
        params,
        cancelOptions(signal),
      )
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

  /** Asks one question with one answer. `later`: the person closed the form. `no`: they refuse to answer. */
  async fill(sessionId: string, toolCallId: string, asked: FormQuestion, signal: AbortSignal): Promise<FormAnswer> {
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
      const said = await this.#client.request(methods.client.elicitation.create, params, cancelOptions(signal))
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

type PermissionOptions = readonly PermissionOption[]
type FormQuestion = { readonly question: string; readonly choices: readonly string[] }
export type FormAnswer = { readonly type: 'answer'; readonly text: string } | { readonly type: 'no' | 'later' | 'gone' }

/** Stops waiting for the answer when the question is withdrawn. */
function cancelOptions(signal: AbortSignal) {
  return { cancellationSignal: signal, stopWaitingOnCancel: true }
}
