// A toolkit of 500 tools as one server offers them that joins many services: their names, and what each says of itself.
import type { RankedTool } from '../../src/agents/index.ts'

/** A service and its things, each with the verbs that there are tools for. */
const SERVICES: Readonly<Record<string, readonly string[]>> = {
  github: [
    'repository: list search get create update delete fork star',
    'pull_request: list search get create update merge close',
    'pull_request_review: list create submit dismiss',
    'pull_request_file: list',
    'pull_request_comment: list create',
    'issue: list search get create update close lock',
    'issue_comment: list add update delete',
    'branch: list get create delete rename',
    'commit: list get compare',
    'release: list get create update delete',
    'tag: list create delete',
    'label: list create add remove',
    'milestone: list create update',
    'workflow: list get enable disable',
    'workflow_run: list get rerun cancel',
    'workflow_run_log: download',
    'code_scanning_alert: list get dismiss',
    'secret_scanning_alert: list get',
    'notification: list mark',
    'gist: list get create delete',
    'file_content: get create update delete',
    'collaborator: list add remove',
    'deployment: list create',
    'discussion: list get create',
    'star: list',
    'code: search',
    'user: search get',
    'team: list get',
    'team_member: list add remove',
    'webhook: list create delete ping',
  ],
  slack: [
    'message: search send schedule update delete pin',
    'direct_message: list send',
    'channel: list search get create archive rename join leave',
    'channel_member: list invite remove',
    'channel_history: get',
    'thread: get reply',
    'reaction: list add remove',
    'user: list search get',
    'user_status: set clear',
    'user_group: list create',
    'file: list upload share delete',
    'reminder: list create complete delete',
    'bookmark: list add remove',
    'emoji: list',
  ],
  gmail: [
    'email: search list get send forward delete archive mark',
    'email_thread: list get reply trash',
    'draft: list get create update send delete',
    'label: list create apply remove delete',
    'attachment: list download',
    'filter: list create delete',
    'vacation_responder: get set',
    'signature: get update',
    'contact: search list get create update delete',
  ],
  calendar: [
    'event: list search get create update move delete',
    'event_attendee: list add remove',
    'event_invitation: accept decline',
    'free_slot: find',
    'calendar: list get create delete share',
    'working_hours: get set',
    'room: list book',
    'conference_link: create',
  ],
  drive: [
    'file: list search get download upload copy move rename delete',
    'folder: list create move delete',
    'file_permission: list share revoke',
    'file_comment: list add resolve',
    'file_revision: list restore',
    'document: get create append update export',
    'spreadsheet: get create duplicate',
    'spreadsheet_row: list append update delete',
    'spreadsheet_cell: read update clear',
    'slide_deck: get create export',
    'form: get create',
    'form_response: list',
  ],
  jira: [
    'issue: search get create update assign transition delete',
    'issue_comment: list add delete',
    'issue_link: create delete',
    'issue_attachment: list upload',
    'issue_watcher: list add remove',
    'worklog: list add',
    'sprint: list get create start complete',
    'sprint_issue: list move',
    'board: list get',
    'backlog: list',
    'epic: list get create',
    'project: list get create',
    'project_version: list create release',
    'filter: list run',
    'user: search',
  ],
  notion: [
    'page: search get create update archive',
    'page_content: get append',
    'database: list query create update',
    'database_row: create update delete',
    'block: list append delete',
    'comment: list add',
    'user: list',
  ],
  stripe: [
    'customer: list search get create update delete',
    'invoice: list get create send finalize void',
    'subscription: list get create cancel update',
    'payment: list get capture',
    'refund: list create',
    'payout: list get',
    'product: list create update',
    'price: list create',
    'coupon: list create delete',
    'dispute: list get close',
    'balance: get',
    'payment_link: create',
  ],
  pagerduty: [
    'incident: list get create acknowledge resolve reassign',
    'incident_note: list add',
    'on_call: list',
    'schedule: list get override',
    'escalation_policy: list get',
    'service: list get',
    'alert: list get',
  ],
  datadog: [
    'monitor: list get create mute delete',
    'dashboard: list get create',
    'metric: query list',
    'log: search tail',
    'trace: search get',
    'event: post list',
    'downtime: list schedule cancel',
    'slo: list get',
    'host: list mute',
  ],
  hubspot: [
    'contact: search get create update merge',
    'company: search get create update',
    'deal: list search get create update',
    'ticket: list get create close',
    'note: add',
    'task: list create complete',
    'pipeline: list',
    'owner: list',
  ],
  zoom: [
    'meeting: list get create update delete',
    'meeting_participant: list',
    'recording: list get download',
    'transcript: get',
    'webinar: list create',
  ],
  trello: [
    'board: list get create',
    'card: list search get create move archive',
    'card_comment: add',
    'checklist: create',
    'checklist_item: check',
    'list: create archive',
  ],
  linear: [
    'issue: list search get create update archive',
    'cycle: list get',
    'project: list get create update',
    'comment: list create',
    'team: list',
    'label: list',
  ],
  shopify: [
    'order: list get update cancel refund',
    'product: list get create update delete',
    'inventory_level: get adjust',
    'fulfillment: list create',
    'collection: list create',
    'discount: list create',
    'customer: list search get create',
  ],
  zendesk: ['ticket: list search get create update', 'macro: list', 'article: search'],
  spotify: ['playlist: list get create', 'track: search play', 'playback: pause skip'],
  weather: ['forecast: get', 'current_weather: get', 'weather_alert: list'],
  maps: ['place: search get', 'directions: get', 'travel_time: get'],
  translate: ['text: translate', 'language: detect'],
  news: ['headline: list', 'article: search'],
}

/** Verbs that take many things. */
const MANY: ReadonlySet<string> = new Set(['list', 'search', 'query'])

export const toolkit: readonly RankedTool[] = Object.entries(SERVICES).flatMap(([service, things]) =>
  things.flatMap((row) => {
    const [thing = '', verbs = ''] = row.split(': ')
    return verbs.split(' ').map((verb) => toolOf(service, verb, thing))
  }),
)

function toolOf(service: string, verb: string, thing: string): RankedTool {
  const what = MANY.has(verb) ? plural(thing) : thing
  const words = what.replaceAll('_', ' ')
  const article = MANY.has(verb) ? '' : /^[aeiou]/.test(words) ? 'an ' : 'a '
  const said = `${verb[0]?.toUpperCase()}${verb.slice(1)} ${article}${words}`
  return {
    name: `${service}_${verb}_${what}`,
    description: `${said} in ${service}. Needs the user's ${service} account.`,
  }
}

function plural(thing: string): string {
  if (thing === 'code') return thing
  if (thing.endsWith('y')) return `${thing.slice(0, -1)}ies`
  return /(s|x|ch)$/.test(thing) ? `${thing}es` : `${thing}s`
}
