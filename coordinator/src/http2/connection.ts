import { ConnectionError, toConnectionError } from "./connection-error.ts";
import type { ConnectionOptions } from "./connection-options.ts";
import { assertConnection, assertLength, assertPriority, incrementOf } from "./frame-checks.ts";
import { FrameReader } from "./frame-reader.ts";
import {
  CODE,
  encodeFrame,
  encodeGoAway,
  encodeNumber,
  encodeSettings,
  FLAG,
  FRAME,
  type Frame,
  SETTING,
} from "./frames.ts";
import { type HeaderBlock, HeaderBlocks, withoutPadding } from "./header-block.ts";
import { HeaderDecoder, type HeaderList } from "./hpack/header-decoder.ts";
import { type Outgoing, Output } from "./output.ts";
import { PeerLimits } from "./peer-limits.ts";
import { readSettings } from "./peer-settings.ts";
import { ReceiveWindow } from "./receive-window.ts";
import { areTrailers, contentLengthOf, readRequestHead } from "./request-head.ts";
import { Sender } from "./sender.ts";
import { ServerStream, type StreamHost } from "./server-stream.ts";
import { StreamTable } from "./stream-table.ts";

export type { ConnectionOptions } from "./connection-options.ts";

/** The size limit of decoded header fields, each of which counts 32 bytes more. */
const MAX_HEADER_LIST_BYTES = 16 * 1024;
/**
 * The size below which parts of a body are counted as abuse by default, because their overhead
 * exceeds their content.
 */
const SMALL_DATA_BYTES = 64;
const PING_BYTES = 8;

/**
 * The server's side of one HTTP/2 connection (RFC 9113), without a socket: received bytes go in,
 * and requests and bytes to send come out. The memory that a peer can occupy is limited.
 */
export class Connection implements StreamHost {
  readonly #options: ConnectionOptions;
  readonly #reader = new FrameReader();
  readonly #blocks = new HeaderBlocks();
  readonly #decoder = new HeaderDecoder(MAX_HEADER_LIST_BYTES);
  readonly #output: Output;
  readonly #sender: Sender;
  readonly #limits: PeerLimits;
  readonly #streams = new StreamTable();
  readonly #onFrame = (frame: Frame): void => this.#dispatch(frame);
  readonly #receiveWindow = new ReceiveWindow();
  #hasSettings = false;
  #isLeaving = false;
  #isOver = false;
  /** The monotonic time at which the peer last sent something. */
  #receivedMs: number;
  #pingedMs: number | undefined;

  constructor(options: ConnectionOptions) {
    this.#options = options;
    this.#receivedMs = options.monotonicMs();
    this.#output = new Output(options.onOutput);
    this.#limits = new PeerLimits(options, this.#receivedMs);
    this.#sender = new Sender({
      output: this.#output,
      monotonicMs: options.monotonicMs,
      onData: () => this.#limits.dataSent(),
      onEnd: (stream) => this.#responseSent(stream),
    });
    this.#output.push(
      encodeSettings([
        [SETTING.MAX_CONCURRENT_STREAMS, options.maxStreams],
        [SETTING.MAX_HEADER_LIST_SIZE, MAX_HEADER_LIST_BYTES],
      ]),
    );
  }

  get openStreams(): number {
    return this.#streams.size;
  }

  /** Whether the peer has sent the preface and settings. */
  get hasSettings(): boolean {
    return this.#hasSettings;
  }

  /** The monotonic time at which the peer last sent something. */
  get receivedMs(): number {
    return this.#receivedMs;
  }

  /** The time of an unanswered PING; undefined if there is none. */
  get pingedMs(): number | undefined {
    return this.#pingedMs;
  }

  /** Whether `leave` was called. */
  get isLeaving(): boolean {
    return this.#isLeaving;
  }

  get hasOutput(): boolean {
    return !this.#output.isEmpty;
  }

  /** Processes bytes from the transport. Never throws. */
  receive(bytes: Buffer): void {
    if (this.#isOver) return;
    this.#receivedMs = this.#options.monotonicMs();
    try {
      this.#reader.read(bytes, this.#onFrame);
    } catch (error) {
      this.fail(toConnectionError(error));
    }
  }

  takeOutput(): Outgoing {
    return this.#output.drain();
  }

  /** Continues sending when the transport accepts data again. */
  resume(): void {
    if (!this.#isOver) this.#sender.resume();
  }

  ping(): void {
    this.#pingedMs ??= this.#options.monotonicMs();
    this.#control(encodeFrame(FRAME.PING, 0, 0, Buffer.alloc(PING_BYTES)));
  }

  /** Refuses new streams. Open streams continue. */
  leave(): void {
    if (this.#isOver || this.#isLeaving) return;
    this.#isLeaving = true;
    this.#control(encodeGoAway(this.#streams.lastId, CODE.NO_ERROR));
  }

  /** Ends the connection and all streams because of an error of the peer. */
  fail(error: ConnectionError): void {
    if (this.#isOver) return;
    this.#output.push(encodeGoAway(this.#streams.lastId, error.code));
    this.close();
    this.#options.onFailure(error);
  }

  /** Ends all streams after the transport has closed. */
  close(): void {
    this.#isOver = true;
    for (const stream of this.#streams.all()) this.#close(stream, false);
  }

  /**
   * Resets the streams that have been blocked by the peer's windows since before the given time.
   * Returns their number.
   */
  resetStalled(beforeMs: number): number {
    const stalled = this.#sender.stalledSince(beforeMs);
    for (const stream of stalled) this.reset(stream, CODE.ENHANCE_YOUR_CALM);
    return stalled.length;
  }

  send(stream: ServerStream): void {
    if (!this.#isOver) this.#sender.send(stream);
  }

  reset(stream: ServerStream, code: number): void {
    if (stream.isClosed) return;
    this.#control(encodeNumber(FRAME.RST_STREAM, stream.id, code));
    this.#close(stream, false);
  }

  returnWindow(stream: ServerStream): void {
    if (this.#isOver) return;
    for (const frame of this.#receiveWindow.extend(stream)) this.#control(frame);
  }

  widenWindow(stream: ServerStream, bytes: number): void {
    for (const frame of this.#receiveWindow.widen(stream, bytes)) this.#control(frame);
  }

  #control(frame: Buffer): void {
    if (this.#isOver) return;
    if (this.#output.hasRoomForControl) this.#output.push(frame);
    else this.fail(new ConnectionError(CODE.ENHANCE_YOUR_CALM, "the peer does not read", "UNREAD"));
  }

  #dispatch(frame: Frame): void {
    const { type, flags } = frame;
    if (this.#isOver) return;
    if (!this.#hasSettings && (type !== FRAME.SETTINGS || (flags & FLAG.ACK) !== 0))
      throw new ConnectionError(CODE.PROTOCOL_ERROR, "the first frame is not SETTINGS");
    if (this.#blocks.isOpen && type !== FRAME.CONTINUATION)
      throw new ConnectionError(CODE.PROTOCOL_ERROR, "another frame interrupts a header block");
    switch (type) {
      case FRAME.DATA:
        this.#data(frame);
        break;
      case FRAME.HEADERS:
      case FRAME.CONTINUATION: {
        const block = this.#blocks.push(frame);
        if (block !== undefined) this.#headers(block);
        break;
      }
      case FRAME.RST_STREAM:
        this.#resetByPeer(frame);
        break;
      case FRAME.SETTINGS:
        this.#settings(frame);
        break;
      case FRAME.PING:
        this.#ping(frame);
        break;
      case FRAME.WINDOW_UPDATE:
        this.#windowUpdate(frame);
        break;
      case FRAME.PUSH_PROMISE:
        throw new ConnectionError(CODE.PROTOCOL_ERROR, "clients must not send PUSH_PROMISE");
      default:
        if (type === FRAME.PRIORITY) assertPriority(frame);
        if (type === FRAME.GOAWAY) assertConnection(frame);
        this.#limits.emptyFrame(this.#receivedMs);
    }
  }

  #data(frame: Frame): void {
    const { streamId, flags, payload } = frame;
    const stream = this.#streams.existing(streamId);
    const bytes = withoutPadding(frame);
    const endsStream = (flags & FLAG.END_STREAM) !== 0;
    this.#receiveWindow.use(payload.length);
    if (stream === undefined || stream.hasRequest) {
      this.#limits.emptyFrame(this.#receivedMs);
      this.#return(payload.length);
      if (!this.#streams.wasReset(streamId)) this.#error(streamId, CODE.STREAM_CLOSED);
      return;
    }
    const { smallDataBytes = SMALL_DATA_BYTES } = this.#options;
    if (bytes.length < smallDataBytes && !endsStream) this.#limits.emptyFrame(this.#receivedMs);
    stream.unreturned += payload.length;
    stream.receiveWindow -= payload.length;
    if (stream.expectedBytes !== undefined) stream.expectedBytes -= bytes.length;
    if (stream.receiveWindow < 0) this.#error(streamId, CODE.FLOW_CONTROL_ERROR);
    else if (bytes.length > 0) stream.user?.data(bytes);
    if (endsStream && !stream.isClosed) this.#requestEnded(stream);
  }

  #headers(block: HeaderBlock): void {
    const { streamId, endsStream, isSelfDependent, bytes } = block;
    const list = this.#decoder.decode(bytes);
    if (streamId > this.#streams.lastId) {
      this.#open(block, list);
    } else if (this.#streams.wasReset(streamId)) {
      this.#limits.emptyFrame(this.#receivedMs);
    } else {
      const stream = this.#streams.forTrailers(streamId);
      const isWrong = !endsStream || isSelfDependent || list.isTooLarge || !areTrailers(list.fields);
      if (stream.hasRequest) this.#error(streamId, CODE.STREAM_CLOSED);
      else if (isWrong) this.#error(streamId, CODE.PROTOCOL_ERROR);
      else this.#requestEnded(stream);
    }
  }

  #open({ streamId, endsStream, isSelfDependent }: HeaderBlock, { fields, isTooLarge }: HeaderList): void {
    const { onRequest, maxStreams } = this.#options;
    this.#streams.lastId = streamId;
    if (this.#isLeaving) return;
    this.#limits.streamOpened();
    const head = readRequestHead(fields);
    if (this.#streams.size >= maxStreams) {
      this.#refuse(streamId, CODE.REFUSED_STREAM);
    } else if (isTooLarge) {
      this.#refuse(streamId, CODE.ENHANCE_YOUR_CALM);
    } else if (isSelfDependent || head === undefined) {
      this.#refuse(streamId, CODE.PROTOCOL_ERROR);
    } else {
      const stream = new ServerStream(streamId, this, this.#sender.initialWindow, this.#receivedMs);
      stream.expectedBytes = contentLengthOf(head);
      this.#streams.add(stream);
      onRequest(stream, head);
      if (endsStream && !stream.isClosed) this.#requestEnded(stream);
    }
  }

  #requestEnded(stream: ServerStream): void {
    if (stream.expectedBytes !== undefined && stream.expectedBytes !== 0) {
      this.#error(stream.id, CODE.PROTOCOL_ERROR);
      return;
    }
    stream.hasRequest = true;
    this.#returnOf(stream);
    stream.user?.end();
  }

  #responseSent(stream: ServerStream): void {
    // The rest of the request is not needed.
    if (!stream.hasRequest) this.#control(encodeNumber(FRAME.RST_STREAM, stream.id, CODE.NO_ERROR));
    this.#close(stream, stream.hasRequest);
  }

  #resetByPeer(frame: Frame): void {
    const stream = this.#streams.existing(frame.streamId);
    assertLength(frame, 4, "RST_STREAM");
    if (stream === undefined) {
      // The request was refused immediately, and the client cancelled it without waiting for the
      // answer.
      if (this.#streams.wasReset(frame.streamId)) this.#limits.reset(this.#receivedMs);
      else this.#limits.emptyFrame(this.#receivedMs);
    } else {
      this.#close(stream, true);
      this.#limits.cancelled(stream.openedMs, this.#receivedMs);
    }
  }

  #settings(frame: Frame): void {
    assertConnection(frame);
    if ((frame.flags & FLAG.ACK) !== 0) {
      assertLength(frame, 0, "acknowledging SETTINGS");
      this.#limits.emptyFrame(this.#receivedMs);
      return;
    }
    this.#hasSettings = true;
    this.#limits.settings(this.#receivedMs);
    const { initialWindow } = readSettings(frame.payload);
    // The acknowledgement must precede data that new windows allow.
    this.#control(encodeFrame(FRAME.SETTINGS, FLAG.ACK, 0, Buffer.alloc(0)));
    if (initialWindow !== undefined) this.#sender.setInitialWindow(initialWindow, this.#streams.all());
  }

  #ping(frame: Frame): void {
    assertConnection(frame);
    assertLength(frame, PING_BYTES, "PING");
    if ((frame.flags & FLAG.ACK) === 0) {
      this.#limits.ping(this.#receivedMs);
      this.#control(encodeFrame(FRAME.PING, FLAG.ACK, 0, frame.payload));
    } else {
      if (this.#pingedMs === undefined) this.#limits.emptyFrame(this.#receivedMs);
      this.#pingedMs = undefined;
    }
  }

  #windowUpdate(frame: Frame): void {
    const { streamId } = frame;
    const increment = incrementOf(frame);
    this.#limits.windowUpdate(this.#receivedMs);
    if (streamId === 0) {
      if (increment === 0)
        throw new ConnectionError(CODE.PROTOCOL_ERROR, "a WINDOW_UPDATE frame has an increment of 0");
      this.#sender.widen(increment);
    } else {
      const stream = this.#streams.existing(streamId);
      if (stream === undefined) return;
      if (increment === 0) this.#error(streamId, CODE.PROTOCOL_ERROR);
      else if (!this.#sender.widenStream(stream, increment)) this.#error(streamId, CODE.FLOW_CONTROL_ERROR);
    }
  }

  /** Resets a stream because of an error of the peer. */
  #error(streamId: number, code: number): void {
    const stream = this.#streams.get(streamId);
    if (stream === undefined) this.#control(encodeNumber(FRAME.RST_STREAM, streamId, code));
    else this.reset(stream, code);
    this.#limits.reset(this.#receivedMs);
  }

  #refuse(streamId: number, code: number): void {
    this.#control(encodeNumber(FRAME.RST_STREAM, streamId, code));
    this.#streams.noteReset(streamId);
    this.#limits.reset(this.#receivedMs);
  }

  /**
   * Removes a stream. `byPeer` means that the peer has ended its side or the whole stream, and may
   * send nothing more for it.
   */
  #close(stream: ServerStream, byPeer: boolean): void {
    if (stream.isClosed) return;
    stream.isClosed = true;
    stream.pending = undefined;
    this.#streams.remove(stream);
    if (!byPeer) this.#streams.noteReset(stream.id);
    this.#sender.forget(stream);
    this.#returnOf(stream);
    stream.user?.close();
  }

  #returnOf(stream: ServerStream): void {
    this.#return(stream.unreturned);
    stream.unreturned = 0;
  }

  /** Extends the connection's window by the given number of bytes. */
  #return(bytes: number): void {
    if (this.#isOver) return;
    for (const frame of this.#receiveWindow.return(bytes)) this.#control(frame);
  }
}
