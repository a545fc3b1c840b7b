// The triggers of a folder's harness, and the endpoints of the server, as the user's configuration has them. A workspace
// cannot set them.
import type { HarnessOptions, Model } from '../../index.ts'
import type { WebhookEndpoint } from '../../server/webhook-endpoints.ts'
import type { NoticeSender } from '../../consumers/index.ts'
import { assert } from '../../kernel/failure.ts'
import type { NotifyEntry, TriggersEntry } from './config.ts'
import { EXIT, CliError } from '../exit.ts'
import { modelsFor } from './folder-agent.ts'
import type { FolderSetup } from './folder-setup.ts'

/** The options that a harness gets for its triggers; empty if none are configured. */
export async function triggerParts(
  setup: FolderSetup,
  chosen: readonly string[],
): Promise<Pick<HarnessOptions, 'triggers' | 'secrets'>> {
  const { triggers: entry } = setup.settings
  if (entry === undefined) return {}
  const { createTriggers } = await import('../../triggers/index.ts')
  const [first, second] = await triageModels(setup, entry, chosen)
  if (first === undefined) throw new CliError(EXIT.config, 'The triggers need a model. Set "triggers.models".')
  const models = second === undefined ? ([first] as const) : ([first, second] as const)
  const { endpointSecrets } = await import('../../server/webhook-endpoints.ts')
  const secrets = endpointSecrets(await readFolderEndpoints(setup, true))
  const { notify } = entry
  // Its secret is looked for when there is a notice: only what drives triggers needs it.
  const told = notify ? { notify: async (...notice: Notice) => (await openSender(notify))(...notice) } : {}
  return { triggers: createTriggers({ models, sources: entry.sources ?? {}, folder: setup.folder, ...told }), secrets }
}

type Notice = Parameters<NoticeSender>

async function openSender({ webhook, command }: NotifyEntry): Promise<NoticeSender> {
  const { commandSender, webhookSender } = await import('../../consumers/index.ts')
  if (webhook) return webhookSender(webhook)
  assert(command, 'a place of notices has a webhook or a command')
  return commandSender(command)
}

/** A server refuses to start with a place of notices that it could not use. */
export async function checkFolderNotify({ settings }: FolderSetup): Promise<void> {
  if (settings.triggers?.notify) await openSender(settings.triggers.notify)
}

function triageModels(
  setup: FolderSetup,
  { models: named }: TriggersEntry,
  chosen: readonly string[],
): Promise<readonly Model[]> {
  const { models, model = [] } = setup.settings
  const { burst, chat } = models?.routes ?? {}
  const own = burst !== undefined || chat !== undefined ? ['hint:burst'] : model.slice(0, 1)
  return modelsFor(setup, { models: chosen.length > 0 ? chosen.slice(0, 2) : (named ?? own) })
}

/** With `lenient` those without a secret are left out: only a server needs all of them. */
export async function readFolderEndpoints(
  { settings, env }: FolderSetup,
  lenient = false,
): Promise<ReadonlyMap<string, WebhookEndpoint>> {
  const { readEndpoints } = await import('../../server/webhook-endpoints.ts')
  const endpoints = Object.entries(settings.triggers?.endpoints ?? {})
  const known = endpoints.flatMap(([name, options]) => {
    try {
      return [...readEndpoints({ [name]: options }, env)]
    } catch (error) {
      if (lenient) return []
      throw error
    }
  })
  return new Map(known)
}
