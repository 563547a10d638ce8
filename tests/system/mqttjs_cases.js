// What MQTT.js expects of a broker: node mqttjs_cases.js URL VERSION SMALL ALIASES
// Runs all cases on the broker at URL at once, in MQTT 3.1.1 (VERSION 4) or 5.0 (5); SMALL is 1 for a broker that cannot take large messages
// over WebSocket, ALIASES 1 for one that sends topic aliases. Prints {case, error} as one JSON object a line, error null if the case holds.
'use strict'
const assert = require('assert')
const mqtt = require('mqtt')

const [url, versionText, small, aliasesText] = process.argv.slice(2)
const aliases = aliasesText === '1'
const version = Number(versionText)
const DEADLINE_MS = 40000 // the test waits for twice that
const cases = {}
const casesOf5 = {}

// ---- helpers ----

class Case {
  constructor (name) {
    this.name = name
    this.clients = []
  }

  topic (rest = 't') {
    return `${this.name}/${rest}`
  }

  id (rest = 'c') {
    return `${this.name}-${version}-${rest}`
  }

  // A client, connected; messages gathers what it gets.
  async connect (options = {}) {
    const client = this.open(options)
    client.connack = await once(client, 'connect')
    return client
  }

  open (options = {}) {
    const client = mqtt.connect(url, { protocolVersion: version, reconnectPeriod: 0, connectTimeout: DEADLINE_MS, ...options })
    client.messages = []
    client.on('message', (topic, payload, packet) => client.messages.push({ topic, payload, ...pick(packet) }))
    client.on('error', (error) => { client.lastError = error })
    this.clients.push(client)
    return client
  }

  async end () {
    await Promise.all(this.clients.map((client) => new Promise((resolve) => client.end(true, resolve))))
  }
}

const pick = (packet) => ({ qos: packet.qos, retain: packet.retain, dup: packet.dup, properties: packet.properties || {} })
const once = (emitter, event) => new Promise((resolve, reject) => {
  emitter.once(event, resolve)
  if (event !== 'error') emitter.once('error', reject)
})
const call = (client, method, ...rest) => new Promise((resolve, reject) =>
  client[method](...rest, (error, result) => error ? reject(error) : resolve(result)))
const publish = (client, topic, payload, options = {}) => call(client, 'publish', topic, payload, options)
const subscribe = (client, topic, options = { qos: 0 }) => call(client, 'subscribe', topic, options)
const unsubscribe = (client, topic) => call(client, 'unsubscribe', topic)
const drop = async (client) => {
  const closed = new Promise((resolve) => client.once('close', resolve))
  client.stream.destroy()
  await closed
}
const hangUp = (client) => new Promise((resolve) => client.end(false, resolve))
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

async function until (what, condition) {
  const end = Date.now() + DEADLINE_MS
  for (;;) {
    const seen = condition()
    if (seen) return seen
    if (Date.now() > end) throw new Error('not in time: ' + what)
    await sleep(5)
  }
}
const got = (client, count) => until(`${count} messages`, () => client.messages.length >= count && client.messages)
const gotPayload = (client, payload) => until(`the payload ${payload}`, () => client.messages.find((m) => m.payload.toString() === payload))
// All that was published to the client before has come once this is over.
async function fence (publisher, client, topic) {
  await publish(publisher, topic, 'fence', { qos: 1 })
  await gotPayload(client, 'fence')
  client.messages = client.messages.filter((m) => m.payload.toString() !== 'fence')
}
const payloads = (client) => client.messages.map((m) => m.payload.toString())
const persistent = (id) => version === 5 ? { clientId: id, clean: false, properties: { sessionExpiryInterval: 60 } } : { clientId: id, clean: false }

// ---- both versions ----

cases.connack_tells_success = async (t) => {
  const client = await t.connect({ clientId: t.id() })
  assert.strictEqual(client.connack.sessionPresent, false)
  assert.strictEqual(version === 5 ? client.connack.reasonCode : client.connack.returnCode, 0)
}
cases.clients_come_in_a_crowd = async (t) => {
  const crowd = await Promise.all([...Array(50).keys()].map((n) => t.connect({ clientId: t.id(n) })))
  await Promise.all(crowd.map((client) => subscribe(client, t.topic(), { qos: 1 })))
  await publish(crowd[0], t.topic(), 'to all', { qos: 1 })
  await Promise.all(crowd.map((client) => gotPayload(client, 'to all')))
}
cases.every_qos_both_ways = async (t) => {
  const [a, b] = [await t.connect(), await t.connect()]
  for (const granted of [0, 1, 2]) {
    const [answer] = await subscribe(a, t.topic(`${granted}/+`), { qos: granted })
    assert.strictEqual(answer.qos, granted)
    for (const qos of [0, 1, 2]) await publish(b, t.topic(`${granted}/${qos}`), `${granted}${qos}`, { qos })
  }
  await got(a, 9)
  for (const message of a.messages) assert.strictEqual(message.qos, Math.min(...message.payload.toString().split('').map(Number)))
}
cases.subscriptions_of_one_call = async (t) => {
  const client = await t.connect()
  const granted = await call(client, 'subscribe', { [t.topic('a')]: { qos: 0 }, [t.topic('b/#')]: { qos: 2 }, [t.topic('c/+')]: { qos: 1 } })
  assert.deepStrictEqual(granted.map((g) => g.qos), [0, 2, 1])
  for (const name of ['a', 'b/x/y', 'c/z']) await publish(client, t.topic(name), name, { qos: 1 })
  assert.deepStrictEqual((await got(client, 3)).map((m) => m.topic), ['a', 'b/x/y', 'c/z'].map((n) => t.topic(n)))
}
cases.unsubscribed_is_over = async (t) => {
  const client = await t.connect()
  await subscribe(client, [t.topic('a'), t.topic('b'), t.topic('fence')], { qos: 1 })
  await unsubscribe(client, [t.topic('a'), t.topic('never')])
  await publish(client, t.topic('a'), 'a', { qos: 1 })
  await publish(client, t.topic('b'), 'b', { qos: 1 })
  await fence(client, client, t.topic('fence'))
  assert.deepStrictEqual(payloads(client), ['b'])
}
cases.payloads_of_every_byte = async (t) => {
  const client = await t.connect()
  await subscribe(client, t.topic('#'), { qos: 2 })
  const bytes = Buffer.from([...Array(256).keys()])
  for (const qos of [0, 1, 2]) await publish(client, t.topic(qos), bytes, { qos })
  await publish(client, t.topic('empty'), '', { qos: 1 })
  await got(client, 4)
  for (const message of client.messages.slice(0, 3)) assert.ok(message.payload.equals(bytes))
  assert.strictEqual(client.messages[3].payload.length, 0)
}
cases.payloads_of_every_size = async (t) => {
  const client = await t.connect()
  await subscribe(client, t.topic(), { qos: 1 })
  for (const size of [1, 125, 126, 127, 128, 1023, 1024, 1025, 16383, 16384, 65535, 65536, ...(small === '1' ? [] : [1000000, 3000000])]) {
    const payload = Buffer.alloc(size, size % 251)
    await publish(client, t.topic(), payload, { qos: 1 })
    await until(`a payload of ${size} bytes`, () => client.messages.length)
    assert.ok(client.messages.pop().payload.equals(payload))
  }
}
cases.topics_in_all_letters = async (t) => {
  const client = await t.connect()
  const names = ['温度/北京', 'Straße/größe', 'δοκιμή', '🐝/🏠', 'mit leer/zeichen ', '/', '//', 'a//b', '\ufeffbom']
  for (const name of names) await subscribe(client, t.topic(name), { qos: 1 })
  for (const name of names) await publish(client, t.topic(name), name, { qos: 1 })
  await got(client, names.length)
  assert.deepStrictEqual(client.messages.map((m) => m.topic), names.map((name) => t.topic(name)))
  assert.deepStrictEqual(payloads(client), names)
}
cases.order_of_a_burst = async (t) => {
  const [a, b] = [await t.connect(), await t.connect()]
  await subscribe(a, t.topic('+'), { qos: 2 })
  for (const qos of [0, 1, 2]) {
    for (let begin = 0; begin < 300; begin += 15) { // MQTT.js does not keep to a Receive Maximum by itself
      await Promise.all([...Array(15).keys()].map((n) => publish(b, t.topic(qos), String(begin + n), { qos })))
      await got(a, begin + 15)
    }
    assert.deepStrictEqual(a.messages.map((m) => Number(m.payload)), [...Array(300).keys()])
    a.messages = []
  }
}
cases.retained_is_kept_replaced_and_deleted = async (t) => {
  const publisher = await t.connect()
  await publish(publisher, t.topic('a'), '1', { qos: 1, retain: true })
  await publish(publisher, t.topic('a'), '2', { qos: 1, retain: true })
  await publish(publisher, t.topic('b'), 'x', { qos: 1, retain: true })
  await publish(publisher, t.topic('b'), '', { qos: 1, retain: true })
  const late = await t.connect()
  await subscribe(late, t.topic('#'), { qos: 1 })
  await fence(publisher, late, t.topic('fence'))
  assert.deepStrictEqual(late.messages.map((m) => [m.topic, m.payload.toString(), m.retain]), [[t.topic('a'), '2', true]])
  await publish(publisher, t.topic('a'), 'live', { qos: 1, retain: true })
  assert.strictEqual((await gotPayload(late, 'live')).retain, false)
}
cases.will_of_a_broken_connection = async (t) => {
  const watcher = await t.connect()
  await subscribe(watcher, t.topic('#'), { qos: 2 })
  for (const qos of [0, 1, 2]) {
    const client = await t.connect({ will: { topic: t.topic(qos), payload: Buffer.from([0, 255, qos]), qos, retain: qos === 2 } })
    await drop(client)
  }
  await got(watcher, 3)
  for (const message of watcher.messages) assert.deepStrictEqual([...message.payload], [0, 255, message.qos])
  const late = await t.connect()
  await subscribe(late, t.topic('#'), { qos: 2 })
  await fence(watcher, late, t.topic('fence'))
  assert.deepStrictEqual(late.messages.map((m) => [m.topic, m.retain]), [[t.topic(2), true]])
}
cases.no_will_after_an_orderly_end = async (t) => {
  const watcher = await t.connect()
  await subscribe(watcher, t.topic('#'), { qos: 1 })
  await hangUp(await t.connect({ will: { topic: t.topic('will'), payload: 'never', qos: 1 } }))
  await fence(watcher, watcher, t.topic('fence'))
  assert.deepStrictEqual(payloads(watcher), [])
}
cases.session_goes_on = async (t) => {
  const client = await t.connect(persistent(t.id()))
  assert.strictEqual(client.connack.sessionPresent, false)
  await subscribe(client, t.topic('#'), { qos: 2 })
  await hangUp(client)
  const publisher = await t.connect()
  for (const qos of [1, 2]) await publish(publisher, t.topic(qos), `missed ${qos}`, { qos })
  const back = await t.connect(persistent(t.id()))
  assert.strictEqual(back.connack.sessionPresent, true)
  await got(back, 2)
  assert.deepStrictEqual(payloads(back), ['missed 1', 'missed 2'])
  await hangUp(back)
  const clean = await t.connect({ clientId: t.id() })
  assert.strictEqual(clean.connack.sessionPresent, false)
  await publish(publisher, t.topic('x'), 'nobody\'s', { qos: 1 })
  await subscribe(clean, t.topic('fence'), { qos: 1 })
  await fence(publisher, clean, t.topic('fence'))
  assert.deepStrictEqual(payloads(clean), [])
}
cases.client_reconnects_by_itself = async (t) => {
  const client = await t.connect({ clientId: t.id(), reconnectPeriod: 20 })
  await subscribe(client, t.topic(), { qos: 1 })
  for (let n = 0; n < 3; n++) {
    client.stream.destroy()
    await once(client, 'connect')
    await until('it has subscribed again', () => client.connected)
    await publish(client, t.topic(), `after ${n}`, { qos: 1 })
    await gotPayload(client, `after ${n}`)
  }
}
cases.what_was_stored_offline_is_sent = async (t) => {
  const watcher = await t.connect()
  await subscribe(watcher, t.topic('+'), { qos: 2 })
  const client = await t.connect({ ...persistent(t.id()), reconnectPeriod: 50 })
  client.stream.destroy()
  await until('it is offline', () => !client.connected)
  const sent = [1, 2, 1, 2].map((qos, n) => publish(client, t.topic(qos), String(n), { qos }))
  await Promise.all(sent)
  await got(watcher, 4)
  await fence(watcher, watcher, t.topic('fence'))
  assert.deepStrictEqual(payloads(watcher).sort(), ['0', '1', '2', '3'])
}
cases.qos_2_cut_in_the_midst_arrives_once = async (t) => {
  const watcher = await t.connect()
  await subscribe(watcher, t.topic('+'), { qos: 2 })
  // The stores outlive the connection, as in a client that has a disk.
  const client = await t.connect({ ...persistent(t.id()), reconnectPeriod: 20 })
  for (let n = 0; n < 5; n++) {
    const done = publish(client, t.topic('x'), String(n), { qos: 2 })
    client.once('packetsend', (packet) => packet.cmd === 'publish' && setImmediate(() => client.stream.destroy()))
    await done
  }
  await got(watcher, 5)
  await fence(watcher, watcher, t.topic('fence'))
  assert.deepStrictEqual(payloads(watcher), ['0', '1', '2', '3', '4'])
}
cases.unacknowledged_comes_again_with_dup = async (t) => {
  const client = await t.connect(persistent(t.id()))
  await subscribe(client, t.topic(), { qos: 1 })
  client.handleMessage = () => {} // no PUBACK
  const publisher = await t.connect()
  await publish(publisher, t.topic(), 'x', { qos: 1 })
  await got(client, 1)
  assert.strictEqual(client.messages[0].dup, false)
  await drop(client)
  const back = await t.connect(persistent(t.id()))
  await got(back, 1)
  assert.deepStrictEqual([back.messages[0].payload.toString(), back.messages[0].dup], ['x', true])
}
cases.pings_are_answered = async (t) => {
  const client = t.open({ keepalive: 6 }) // not less: the other cases keep this process busy meanwhile
  let answers = 0
  client.on('packetreceive', (packet) => { answers += packet.cmd === 'pingresp' })
  await once(client, 'connect')
  await until('PINGRESP', () => answers > 0)
  assert.ok(client.connected)
}
cases.second_client_of_an_id_takes_over = async (t) => {
  const first = await t.connect(persistent(t.id()))
  const closed = once(first, 'close')
  const told = version === 5 && !process.env.HOBNOB_SYSTEM_AGAINST ? once(first, 'disconnect') : Promise.resolve({ reasonCode: 0x8E })
  await subscribe(first, t.topic(), { qos: 1 })
  const second = await t.connect(persistent(t.id()))
  await closed
  assert.strictEqual((await told).reasonCode, 0x8E)
  assert.strictEqual(second.connack.sessionPresent, true)
  await publish(second, t.topic(), 'here', { qos: 1 })
  await gotPayload(second, 'here')
  assert.deepStrictEqual(first.messages, [])
}
cases.empty_client_id = async (t) => {
  const [a, b] = [await t.connect({ clientId: '', clean: true }), await t.connect({ clientId: '', clean: true })]
  await subscribe(a, t.topic(), { qos: 1 })
  await publish(b, t.topic(), 'x', { qos: 1 })
  await gotPayload(a, 'x')
  if (version === 5) {
    const ids = [a, b].map((client) => client.connack.properties.assignedClientIdentifier)
    assert.ok(ids[0] && ids[1] && ids[0] !== ids[1], ids)
  }
}

// ---- MQTT 5.0 ----

casesOf5.properties_arrive_as_they_were = async (t) => {
  const client = await t.connect()
  await subscribe(client, t.topic(), { qos: 1 })
  const properties = {
    payloadFormatIndicator: true,
    messageExpiryInterval: 4321,
    responseTopic: t.topic('answer'),
    correlationData: Buffer.from([0, 1, 255]),
    contentType: 'application/cbor',
    userProperties: { a: ['1', '3'], b: '2' }
  }
  await publish(client, t.topic(), 'x', { qos: 1, properties })
  const [message] = await got(client, 1)
  assert.ok(message.properties.messageExpiryInterval <= 4321 && message.properties.messageExpiryInterval > 4300)
  for (const name of ['payloadFormatIndicator', 'responseTopic', 'contentType']) assert.strictEqual(message.properties[name], properties[name], name)
  assert.deepStrictEqual([...message.properties.correlationData], [0, 1, 255])
  assert.deepStrictEqual({ ...message.properties.userProperties }, properties.userProperties)
}
casesOf5.request_and_response = async (t) => {
  const [server, asker] = [await t.connect(), await t.connect()]
  await subscribe(server, t.topic('ask'), { qos: 1 })
  await subscribe(asker, t.topic('answer'), { qos: 1 })
  server.on('message', (topic, payload, packet) =>
    server.publish(packet.properties.responseTopic, payload.toString().toUpperCase(), { properties: { correlationData: packet.properties.correlationData } }))
  await publish(asker, t.topic('ask'), 'question', { qos: 1, properties: { responseTopic: t.topic('answer'), correlationData: Buffer.from('17') } })
  const message = await gotPayload(asker, 'QUESTION')
  assert.strictEqual(message.properties.correlationData.toString(), '17')
}
casesOf5.topic_aliases_of_the_client = async (t) => {
  const [a, b] = [await t.connect(), await t.connect()]
  await subscribe(a, t.topic('#'), { qos: 1 })
  const maximum = b.connack.properties.topicAliasMaximum
  assert.ok(maximum > 0)
  for (let round = 0; round < 2; round++) { // the second gives each alias another topic
    for (let alias = 1; alias <= maximum; alias++) {
      const expected = t.topic(`${round}/${alias}`)
      await publish(b, expected, 'with its topic', { qos: alias % 3, properties: { topicAlias: alias } })
      await publish(b, '', 'without', { qos: alias % 3, properties: { topicAlias: alias } })
      await got(a, 2)
      assert.deepStrictEqual(a.messages.map((m) => m.topic), [expected, expected])
      a.messages = []
    }
  }
}
// The option does not stand among the properties: see test_plain_mqttjs.py.
casesOf5.topic_aliases_of_the_broker_are_understood = async (t) => {
  const [a, b, plain] = [await t.connect({ topicAliasMaximum: 3 }), await t.connect(), await t.connect()]
  const sent = [] // what the packets to a say, before the client looks aliases up
  a.on('packetreceive', (packet) => {
    if (packet.cmd === 'publish') sent.push({ topic: packet.topic, alias: (packet.properties || {}).topicAlias })
  })
  for (const client of [a, plain]) await subscribe(client, t.topic('#'), { qos: 2 })
  for (let n = 0; n < 60; n++) await publish(b, t.topic(Math.floor(n / 3) % (n < 30 ? 3 : 6)), String(n), { qos: n % 3 })
  for (const client of [a, plain]) {
    await got(client, 60)
    assert.strictEqual(new Set(payloads(client)).size, 60)
    for (const { topic, payload } of client.messages) assert.strictEqual(topic, t.topic(Math.floor(payload / 3) % (payload < 30 ? 3 : 6)))
  }
  if (aliases) { // 20 of the first 30 are not of QoS 2, and each topic must come once
    assert.ok(sent.filter(({ topic }) => topic === '').length >= 17, JSON.stringify(sent))
    assert.ok(sent.every(({ alias }) => alias === undefined || (alias >= 1 && alias <= 3)), JSON.stringify(sent))
  }
}
casesOf5.aliases_of_the_broker_end_with_the_connection = async (t) => {
  const options = { ...persistent(t.id()), topicAliasMaximum: 5 }
  const [first, b] = [await t.connect(options), await t.connect()]
  await subscribe(first, t.topic('#'), { qos: 1 })
  for (let n = 0; n < 3; n++) await publish(b, t.topic(), String(n), { qos: 1 })
  await got(first, 3)
  await drop(first)
  for (let n = 3; n < 6; n++) await publish(b, t.topic(), String(n), { qos: 1 })
  const second = await t.connect(options)
  await gotPayload(second, '5')
  assert.ok(second.messages.every(({ topic }) => topic === t.topic()))
}
casesOf5.subscription_identifiers = async (t) => {
  const client = await t.connect()
  await subscribe(client, t.topic('#'), { qos: 1, properties: { subscriptionIdentifier: 7 } })
  await subscribe(client, t.topic('only'), { qos: 1, properties: { subscriptionIdentifier: 268435455 } })
  await publish(client, t.topic('other'), 'x', { qos: 1 })
  assert.strictEqual((await gotPayload(client, 'x')).properties.subscriptionIdentifier, 7)
  await publish(client, t.topic('only'), 'y', { qos: 1 })
  await until('both identifiers', () => {
    const seen = client.messages.filter((m) => m.payload.toString() === 'y').flatMap((m) => m.properties.subscriptionIdentifier)
    return seen.includes(7) && seen.includes(268435455)
  })
}
casesOf5.no_local_and_retain_options = async (t) => {
  const [a, b] = [await t.connect(), await t.connect()]
  await publish(a, t.topic('kept'), 'kept', { qos: 1, retain: true })
  await subscribe(b, t.topic('#'), { qos: 1, nl: true, rap: true, rh: 2 })
  await publish(b, t.topic('own'), 'own', { qos: 1 })
  await publish(a, t.topic('other'), 'other', { qos: 1, retain: true })
  await fence(a, b, t.topic('fence'))
  assert.deepStrictEqual(b.messages.map((m) => [m.payload.toString(), m.retain]), [['other', true]])
  await subscribe(b, t.topic('#'), { qos: 1, rh: 1 })
  await fence(a, b, t.topic('fence'))
  assert.strictEqual(b.messages.length, 1)
  await subscribe(b, t.topic('#'), { qos: 1, rh: 0 })
  await fence(a, b, t.topic('fence'))
  assert.deepStrictEqual(payloads(b).sort(), ['kept', 'other', 'other'])
}
casesOf5.shared_subscription_gives_each_message_to_one = async (t) => {
  const members = [await t.connect(), await t.connect(), await t.connect()]
  for (const member of members) await subscribe(member, `$share/g/${t.topic('+')}`, { qos: 1 })
  const publisher = await t.connect()
  for (let n = 0; n < 30; n++) await publish(publisher, t.topic('x'), String(n), { qos: 1 })
  await until('30 messages', () => members.reduce((sum, member) => sum + member.messages.length, 0) >= 30)
  assert.deepStrictEqual(members.flatMap(payloads).map(Number).sort((x, y) => x - y), [...Array(30).keys()])
  for (const member of members) assert.ok(member.messages.length > 0)
}
casesOf5.unsuback_has_codes = async (t) => {
  const client = await t.connect()
  const codes = []
  client.on('packetreceive', (packet) => packet.cmd === 'unsuback' && codes.push(...packet.granted))
  await subscribe(client, [t.topic('a'), t.topic('b')], { qos: 1 })
  await unsubscribe(client, [t.topic('a'), t.topic('never'), t.topic('b')])
  assert.deepStrictEqual(codes, [0, 0x11, 0])
}
casesOf5.receive_maximum_of_the_client = async (t) => {
  const slow = await t.connect({ properties: { receiveMaximum: 2 } })
  let open = 0
  let most = 0
  slow.handleMessage = (packet, done) => {
    if (packet.qos === 0) return done()
    most = Math.max(most, ++open)
    setTimeout(() => { open--; done() }, 5)
  }
  await subscribe(slow, t.topic(), { qos: 1 })
  const publisher = await t.connect()
  await Promise.all([...Array(20).keys()].map((n) => publish(publisher, t.topic(), String(n), { qos: 1 })))
  assert.deepStrictEqual((await got(slow, 20)).map((m) => Number(m.payload)), [...Array(20).keys()])
  assert.ok(most <= 2)
}
casesOf5.maximum_packet_size_of_the_client = async (t) => {
  const [little, large] = [await t.connect({ properties: { maximumPacketSize: 200 } }), await t.connect()]
  for (const client of [little, large]) await subscribe(client, t.topic(), { qos: 1 })
  await publish(large, t.topic(), Buffer.alloc(300, 'x'), { qos: 1 })
  await publish(large, t.topic(), 'short', { qos: 1 })
  await gotPayload(little, 'short')
  await gotPayload(large, 'short')
  assert.deepStrictEqual([little.messages.length, large.messages.length], [1, 2])
}
casesOf5.expired_messages_stay_away = async (t) => {
  const away = await t.connect(persistent(t.id()))
  await subscribe(away, t.topic(), { qos: 1 })
  await hangUp(away)
  const publisher = await t.connect()
  await publish(publisher, t.topic(), 'short', { qos: 1, properties: { messageExpiryInterval: 1 } })
  await publish(publisher, t.topic(), 'long', { qos: 1, properties: { messageExpiryInterval: 1000 } })
  await sleep(2100) // the time of the first must pass
  const back = await t.connect(persistent(t.id()))
  const message = await gotPayload(back, 'long')
  assert.ok(message.properties.messageExpiryInterval < 1000)
  assert.deepStrictEqual(payloads(back), ['long'])
}
casesOf5.session_expiry_can_change_at_the_end = async (t) => {
  const client = await t.connect({ clientId: t.id(), clean: false, properties: { sessionExpiryInterval: 60 } })
  await new Promise((resolve) => client.end(false, { properties: { sessionExpiryInterval: 0 } }, resolve))
  const back = await t.connect(persistent(t.id()))
  assert.strictEqual(back.connack.sessionPresent, false)
}
casesOf5.will_has_its_properties_and_delay = async (t) => {
  const watcher = await t.connect()
  await subscribe(watcher, t.topic('#'), { qos: 1 })
  const will = {
    topic: t.topic('will'),
    payload: 'gone',
    qos: 1,
    properties: { willDelayInterval: 1, contentType: 'text/plain', userProperties: { k: 'v' }, responseTopic: 'r', correlationData: Buffer.from('c') }
  }
  const client = await t.connect({ ...persistent(t.id()), will })
  await drop(client)
  const start = Date.now()
  const message = await gotPayload(watcher, 'gone')
  assert.ok(Date.now() - start > 700, 'before its delay')
  assert.deepStrictEqual([message.properties.contentType, message.properties.responseTopic], ['text/plain', 'r'])
  assert.deepStrictEqual({ ...message.properties.userProperties }, { k: 'v' })
}
casesOf5.disconnect_with_will = async (t) => {
  const watcher = await t.connect()
  await subscribe(watcher, t.topic(), { qos: 1 })
  const client = await t.connect({ will: { topic: t.topic(), payload: 'as asked', qos: 1 } })
  client.end(false, { reasonCode: 4 })
  await gotPayload(watcher, 'as asked')
}
casesOf5.refused_receiver_codes_end_the_matter = async (t) => {
  const client = await t.connect({ ...persistent(t.id()), customHandleAcks: (topic, payload, packet, done) => done(payload.toString() === 'no' ? 0x83 : 0) })
  await subscribe(client, t.topic(), { qos: 1 })
  const publisher = await t.connect()
  await publish(publisher, t.topic(), 'no', { qos: 1 })
  await publish(publisher, t.topic(), 'yes', { qos: 1 })
  await gotPayload(client, 'yes')
  await drop(client)
  const back = await t.connect(persistent(t.id()))
  await publish(publisher, t.topic(), 'last', { qos: 1 })
  await gotPayload(back, 'last')
  assert.ok(!payloads(back).includes('no'))
}

// ---- running ----

async function run (name, body) {
  const t = new Case(name)
  let error = null
  const timer = new Promise((resolve, reject) => setTimeout(() => reject(new Error('the case did not end')), 2 * DEADLINE_MS).unref())
  try {
    await Promise.race([body(t), timer])
  } catch (problem) {
    error = problem.stack
  }
  await Promise.race([t.end(), sleep(2000)])
  process.stdout.write(JSON.stringify({ case: name, error }) + '\n')
}

const wanted = version === 5 ? { ...cases, ...casesOf5 } : cases
Promise.all(Object.entries(wanted).map(([name, body]) => run(name, body))).then(() => process.exit(0))
