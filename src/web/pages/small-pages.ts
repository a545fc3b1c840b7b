// The pages that are loaded together, by the first of them that is opened.
export { AgentsPage } from './agents.tsx'
export { HealthPage } from './health.tsx'
export { InboxPage } from './inbox.tsx'
export { SchedulesPage } from './schedules.tsx'
export { SettingsPage } from './settings.tsx'
