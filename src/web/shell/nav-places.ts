// The main pages, as shown in the rail, the bottom bar and the palette.
import { Activity, Bot, CalendarClock, FlaskConical, Inbox, Rows3, SlidersHorizontal, Webhook } from '../parts/icons.ts'
import type { LucideIcon } from 'lucide-react'
import type { KeyCommand } from './key-commands.ts'

export type NavPlace = {
  readonly path: string
  readonly name: string
  readonly icon: LucideIcon
  readonly command: KeyCommand
}

export const PLACES: readonly NavPlace[] = [
  { path: '/', name: 'Sessions', icon: Rows3, command: 'go.sessions' },
  { path: '/inbox', name: 'Inbox', icon: Inbox, command: 'go.inbox' },
  { path: '/agents', name: 'Agents', icon: Bot, command: 'go.agents' },
  { path: '/schedules', name: 'Schedules', icon: CalendarClock, command: 'go.schedules' },
  { path: '/triggers', name: 'Triggers', icon: Webhook, command: 'go.triggers' },
  { path: '/evals', name: 'Evals', icon: FlaskConical, command: 'go.evals' },
  { path: '/health', name: 'Health', icon: Activity, command: 'go.health' },
  { path: '/settings', name: 'Settings', icon: SlidersHorizontal, command: 'go.settings' },
]
