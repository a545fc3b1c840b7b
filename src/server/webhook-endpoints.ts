// The endpoints that take signed deliveries from outside: their options, checked once, with their secrets read from the
// environment or a file. webhook-signature.ts checks a delivery, answers/triggers.ts takes it in.
import { readFileSync } from 'node:fs'
import type { Harness } from '../harness.ts'
import { Fault } from '../kernel/index.ts'
import {
  countCheck,
  nonEmptyCheck,
  oneOf,
  optionsCheck,
  optionsChecker,
  requiredCheck,
  tableCheck,
  textCheck,
} from '../options.ts'

/** How the sender signs: as GitHub, Stripe or Slack do, or with an HMAC of the body alone. */
export type WebhookScheme = 'github' | 'stripe' | 'slack' | 'hmac'

/** Options of one endpoint that takes signed deliveries: its source, how it is signed, and where the secret is. */
export type EndpointOptions = {
  /** The source of the harness's triggers that the deliveries belong to. */
  readonly source: string
  /** How the sender signs: `github`, `stripe`, `slack` or `hmac`. */
  readonly verify: WebhookScheme
  /** Where the signing secret is: the name of an environment variable, or the path of a file. */
  readonly secret: { readonly env: string } | { readonly file: string }
  /** The label of all deliveries. Default: the kind of the event, as the sender names it. */
  readonly label?: string
  /** For `hmac`: the header with the hex digest, alone or after `sha256=`. Default: `x-signature`. */
  readonly header?: string
  /** For `hmac`: the header with the time in seconds. Then `TIME.BODY` is signed, and old deliveries are refused. */
  readonly timeHeader?: string
  /** The header with the sender's id of the delivery. Default: that of the scheme; for `hmac` none. */
  readonly keyHeader?: string
  /** For `hmac`: the most bytes of a body. Default, and most: 1 MB. */
  readonly bytesMax?: number
}

/** By the last part of the address: `github` is at `POST /v1/triggers/github`. */
export type Endpoints = Readonly<Record<string, EndpointOptions>>

export type WebhookEndpoint = Omit<EndpointOptions, 'secret'> & { readonly name: string; readonly secret: string }

/** What a server needs to take deliveries in. Counts belong to this process. */
export type WebhookDesk = {
  readonly endpoints: ReadonlyMap<string, WebhookEndpoint>
  readonly trigger: Harness['trigger']
  readonly counts: { accepted: number; duplicates: number; refused: number }
}

export const BODY_BYTES_MAX = 1024 * 1024
const SECRET_BYTES_MAX = 4_096
const SECRET_CHARS_MIN = 8
const HEADER = /^[A-Za-z0-9-]{1,64}$/
const NAME = /^[A-Za-z0-9_-]{1,64}$/

const headerCheck = (value: unknown): string | null =>
  typeof value === 'string' && HEADER.test(value) ? null : 'must be the name of a header: letters, digits and "-"'
const checkEndpoints = optionsChecker<{ readonly endpoints: Endpoints }>('the server', {
  endpoints: requiredCheck(
    tableCheck(
      optionsCheck<EndpointOptions>({
        source: requiredCheck(nonEmptyCheck),
        verify: requiredCheck(oneOf<WebhookScheme>({ github: true, stripe: true, slack: true, hmac: true })),
        secret: requiredCheck(
          (value, name, of) =>
            typeof value === 'string'
              ? 'is a text. A secret does not belong into a configuration: write { env: "NAME" } or { file: "PATH" }'
              : optionsCheck<{ readonly env?: string; readonly file?: string }>({
                  env: nonEmptyCheck,
                  file: nonEmptyCheck,
                })(value, name, of),
          'Write secret: { env: "NAME" } or { file: "PATH" }.',
        ),
        label: textCheck,
        header: headerCheck,
        timeHeader: headerCheck,
        keyHeader: headerCheck,
        bytesMax: countCheck(1, BODY_BYTES_MAX),
      }),
    ),
  ),
})

/** Checks the endpoints and reads their secrets. */
export function readEndpoints(
  endpoints: Endpoints,
  env: Readonly<Record<string, string | undefined>> = process.env,
): ReadonlyMap<string, WebhookEndpoint> {
  checkEndpoints({ endpoints })
  return new Map(
    Object.entries(endpoints).map(([name, options]) => {
      if (!NAME.test(name))
        throw new Fault('invalid_config', `"${name}" cannot be an endpoint: use 1 to 64 letters, digits, "_" or "-".`)
      return [name, { ...options, name, secret: readSecret(name, options.secret, env) }]
    }),
  )
}

/** A delivery to a source that does not exist would be refused after its sender was told to deliver here. */
export function checkEndpointSources(
  endpoints: ReadonlyMap<string, Pick<EndpointOptions, 'source'>>,
  sources: readonly string[],
): void {
  for (const [name, { source }] of endpoints) {
    if (sources.includes(source)) continue
    const known =
      sources.length === 0
        ? 'The harness has no triggers: give it triggers: createTriggers({ … }) of terret/triggers'
        : `Name one of: ${sources.join(', ')}`
    const text = `The endpoint "${name}" is for the source "${source.slice(0, 64)}", which does not exist. ${known}.`
    throw new Fault('invalid_config', text)
  }
}

function readSecret(
  endpoint: string,
  from: EndpointOptions['secret'],
  env: Readonly<Record<string, string | undefined>>,
): string {
  const place = 'env' in from ? `The environment variable ${from.env}` : `The file ${from.file}`
  const secret = 'env' in from ? env[from.env] : readSecretFile(endpoint, from.file)
  if (secret === undefined || secret === '')
    throw new Fault('invalid_config', `${place} for the endpoint "${endpoint}" holds no secret. Set it.`)
  if (secret.length < SECRET_CHARS_MIN)
    throw new Fault('invalid_config', `${place} for the endpoint "${endpoint}" is too short for a secret.`)
  return secret
}

/** A line end at the end of the file is not part of the secret. */
function readSecretFile(endpoint: string, file: string): string {
  try {
    const text = readFileSync(file, 'utf8')
    if (text.length <= SECRET_BYTES_MAX) return text.replace(/\r?\n$/, '')
  } catch {
    throw new Fault(
      'invalid_config',
      `The file ${file} for the endpoint "${endpoint}" cannot be read. Correct its path.`,
    )
  }
  throw new Fault('invalid_config', `The file ${file} for the endpoint "${endpoint}" is too long for a secret.`)
}

/** The secrets by a name that a mark in a log can have. */
export function endpointSecrets(endpoints: ReadonlyMap<string, WebhookEndpoint>): Readonly<Record<string, string>> {
  return Object.fromEntries([...endpoints].map(([name, { secret }]) => [`WEBHOOK_${name.replace(/-/g, '_')}`, secret]))
}
