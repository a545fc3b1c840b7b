// Settings: what this browser remembers, whose token this tab has, who else has one, and the keys.
import { ownOf } from '../../view/json.ts'
import { setToken } from '../data/token.ts'
import { useMe } from '../data/query.ts'
import { Button } from '../parts/button.tsx'
import { Choice } from '../parts/choice.tsx'
import { Text } from '../parts/text.tsx'
import { KeyList } from '../shell/help.tsx'
import { PageHead } from '../shell/shell.tsx'
import { change, useSettings } from '../shell/settings.ts'
import { toast } from '../shell/toasts.tsx'
import { Section } from './settings/section.tsx'
import { Tokens } from './settings/tokens.tsx'
import '../style/house.css'

const ROLES = {
  viewer: 'reads',
  operator: 'reads, opens, sends, answers, stops and forks',
  approver: 'reads, and allows or denies calls',
  admin: 'may do everything',
} as const

export function SettingsPage() {
  const { theme, density, notifies } = useSettings()
  const me = useMe().data
  return (
    <div className="page">
      <PageHead title="Settings" />
      <div className="scrolls stack narrow">
        <Section title="This browser" about="Kept here, for all its tabs.">
          <Choice
            name="Theme"
            value={theme}
            options={['auto', 'light', 'dark']}
            onChange={(next) => change({ theme: next })}
          />
          <Choice
            name="Density"
            value={density}
            options={['roomy', 'dense']}
            onChange={(next) => change({ density: next })}
          />
          <Choice
            name="Notify me when something waits"
            value={notifies ? 'on' : 'off'}
            options={['off', 'on']}
            onChange={(next) => void notify(next === 'on')}
          />
        </Section>
        <Section title="You" about="As the server knows the token of this tab.">
          {me ? (
            <dl className="setting-facts">
              <div>
                <dt>Name</dt>
                <dd>
                  <Text text={me.name} />
                </dd>
              </div>
              <div>
                <dt>Role</dt>
                <dd>
                  <Text text={me.role} /> <span className="dim">{ownOf(ROLES, me.role)}</span>
                </dd>
              </div>
              {me.roles.length > 0 ? (
                <div>
                  <dt>Approves as</dt>
                  <dd>
                    <Text text={me.roles.includes('*') ? 'anybody that a rule asks for' : me.roles.join(', ')} />
                  </dd>
                </div>
              ) : null}
              <div>
                <dt>Reaches</dt>
                <dd>{me.reach === 'own' ? 'sessions that it opened' : 'all sessions'}</dd>
              </div>
            </dl>
          ) : null}
          <div className="setting-acts">
            <Button kind="danger" onPress={() => setToken(null)}>
              Forget the token
            </Button>
          </div>
        </Section>
        {me?.role === 'admin' ? <Tokens /> : null}
        <Section title="Keys" about="They do nothing while you write.">
          <KeyList />
        </Section>
      </div>
    </div>
  )
}

async function notify(wanted: boolean): Promise<void> {
  if (!wanted || (await Notification.requestPermission()) === 'granted') return change({ notifies: wanted })
  toast('This browser does not allow notifications of this page.', 'bad')
}
