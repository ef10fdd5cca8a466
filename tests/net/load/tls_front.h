// tls_front.h — TLS before a server that speaks none: a certificate of its own for 127.0.0.1, and a thread
// that passes bytes on.
#pragma once

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <memory>
#include <string>
#include <thread>

namespace weir::tests {

struct self_signed {
  std::string certificate, key;  // PEM

  self_signed() {
    using key_pair = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
    const key_pair pair(EVP_EC_gen("P-256"), &EVP_PKEY_free);
    const std::unique_ptr<X509, decltype(&X509_free)> x(X509_new(), &X509_free);
    X509_set_version(x.get(), X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(x.get()), 1);
    X509_gmtime_adj(X509_getm_notBefore(x.get()), -3600);
    X509_gmtime_adj(X509_getm_notAfter(x.get()), 3600);
    X509_set_pubkey(x.get(), pair.get());
    auto* name = X509_get_subject_name(x.get());
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>("weir test"),
                               -1, -1, 0);
    X509_set_issuer_name(x.get(), name);
    X509_EXTENSION* names = X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, "IP:127.0.0.1");
    X509_add_ext(x.get(), names, -1);
    X509_EXTENSION_free(names);
    X509_sign(x.get(), pair.get(), EVP_sha256());
    certificate = pem([&](BIO* b) { PEM_write_bio_X509(b, x.get()); });
    key =
        pem([&](BIO* b) { PEM_write_bio_PrivateKey(b, pair.get(), nullptr, nullptr, 0, nullptr, nullptr); });
  }

 private:
  template <class Write>
  static std::string pem(Write write) {
    const std::unique_ptr<BIO, decltype(&BIO_free)> b(BIO_new(BIO_s_mem()), &BIO_free);
    write(b.get());
    char* at = nullptr;
    const auto n = BIO_get_mem_data(b.get(), &at);
    return {at, static_cast<std::size_t>(n)};
  }
};

class tls_front {
 public:
  tls_front(const self_signed& who, unsigned short behind)
      : behind_(boost::asio::ip::address_v4::loopback(), behind) {
    tls_.use_certificate(boost::asio::buffer(who.certificate), boost::asio::ssl::context::pem);
    tls_.use_private_key(boost::asio::buffer(who.key), boost::asio::ssl::context::pem);
    boost::asio::co_spawn(io_, accept(), boost::asio::detached);
    thread_ = std::thread([this] { io_.run(); });
  }
  ~tls_front() {
    io_.stop();
    thread_.join();
  }
  std::string url(const char* scheme) const {
    return std::string(scheme) + "://127.0.0.1:" + std::to_string(acceptor_.local_endpoint().port());
  }

 private:
  using tcp = boost::asio::ip::tcp;
  using error_code = boost::system::error_code;
  template <class T>
  using task = boost::asio::awaitable<T>;

  struct call {
    call(tcp::socket s, boost::asio::ssl::context& tls) : in(std::move(s), tls), out(in.get_executor()) {}
    boost::asio::ssl::stream<tcp::socket> in;
    tcp::socket out;
    void end() {
      error_code ignored;
      in.lowest_layer().close(ignored);
      out.close(ignored);
    }
  };

  task<void> accept() {
    for (;;) {
      error_code ec;
      tcp::socket s =
          co_await acceptor_.async_accept(boost::asio::redirect_error(boost::asio::use_awaitable, ec));
      if (ec) co_return;
      auto c = std::make_shared<call>(std::move(s), tls_);
      boost::asio::co_spawn(io_, pass(c), boost::asio::detached);
    }
  }

  task<void> pass(std::shared_ptr<call> c) {
    error_code ec;
    co_await c->in.async_handshake(boost::asio::ssl::stream_base::server,
                                   boost::asio::redirect_error(boost::asio::use_awaitable, ec));
    if (!ec)
      co_await c->out.async_connect(behind_, boost::asio::redirect_error(boost::asio::use_awaitable, ec));
    if (ec) co_return c->end();
    boost::asio::co_spawn(io_, copy(c, c->out, c->in), boost::asio::detached);
    co_await copy(c, c->in, c->out);
  }

  template <class From, class To>
  task<void> copy(std::shared_ptr<call> c, From& from, To& to) {
    char bytes[8192];
    error_code ec;
    for (;;) {
      const std::size_t n = co_await from.async_read_some(
          boost::asio::buffer(bytes), boost::asio::redirect_error(boost::asio::use_awaitable, ec));
      if (n > 0)
        co_await boost::asio::async_write(to, boost::asio::buffer(bytes, n),
                                          boost::asio::redirect_error(boost::asio::use_awaitable, ec));
      if (ec) break;
    }
    c->end();
  }

  boost::asio::io_context io_{1};
  tcp::acceptor acceptor_{io_, {boost::asio::ip::address_v4::loopback(), 0}};
  tcp::endpoint behind_;
  boost::asio::ssl::context tls_{boost::asio::ssl::context::tls_server};
  std::thread thread_;
};

}  // namespace weir::tests
